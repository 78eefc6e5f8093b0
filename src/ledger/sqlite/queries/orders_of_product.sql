-- List one product's orders in order of their ids, which is the order of time.
--
-- ?1 status (null: any)  ?2 after this id (null: from the start)  ?3 at most so many  ?4 sku
SELECT orders.id, products.sku, quantity, customer_id, segment, status, customer_key
FROM orders
JOIN products ON products.id = orders.product_id
WHERE products.sku = ?4
    AND (?1 IS NULL OR status = ?1)
    AND (?2 IS NULL OR orders.id > ?2)
ORDER BY orders.id
LIMIT ?3
