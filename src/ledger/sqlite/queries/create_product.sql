-- Create a product; no row when the SKU is taken. Its segments follow in the same transaction.
--
-- ?1 sku  ?2 name  ?3 number of segments  ?4 max_per_order  ?5 starts_at  ?6 ends_at  ?7 created_at
INSERT INTO products (sku, name, segments, max_per_order, starts_at, ends_at, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (sku) DO NOTHING
RETURNING *
