-- List one product's orders in order of their ids, which is the order of time.
--
-- ?1 status (null: any)  ?2 after this id (null: from the start)  ?3 at most so many  ?4 sku
SELECT id, ?4 AS sku, quantity, customer_id, segment, status, customer_key
FROM orders
WHERE product_id = (SELECT products.id FROM products WHERE products.sku = ?4)
    AND (?1 IS NULL OR status = ?1)
    -- An OR would keep the index from beginning behind the id, and every page would read all pages before it.
    AND id > coalesce(?2, x'')
ORDER BY id
LIMIT ?3
