-- Create a product with its segments; no row when the SKU is taken.
--
-- $1 sku  $2 name  $3 max_per_order  $4 starts_at  $5 ends_at  $6 units of each segment, in index order
-- Returns the product.
WITH product AS (
    INSERT INTO products (sku, name, segments, max_per_order, starts_at, ends_at)
    VALUES ($1, $2, cardinality($6::bigint[]), $3, $4, $5)
    ON CONFLICT ON CONSTRAINT products_sku_unique DO NOTHING
    RETURNING *
), shares AS (
    INSERT INTO segments (product_id, index, allotted)
    SELECT product.id, share.number - 1, share.units
    FROM product, unnest($6::bigint[]) WITH ORDINALITY AS share (units, number)
)
SELECT * FROM product
