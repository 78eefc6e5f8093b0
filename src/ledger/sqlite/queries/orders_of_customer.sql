-- List one customer's orders in order of their ids, which is the order of time.
--
-- ?1 status (null: any)  ?2 after this id (null: from the start)  ?3 at most so many  ?4 sku (null: any)
-- ?5 customer id  ?6, ?7 the range of order keys that this customer's orders can have
SELECT orders.id, products.sku, quantity, customer_id, segment, status, customer_key
FROM orders
JOIN products ON products.id = orders.product_id
WHERE customer_key BETWEEN ?6 AND ?7
    AND customer_id = ?5
    AND (?4 IS NULL OR products.sku = ?4)
    AND (?1 IS NULL OR status = ?1)
    AND orders.id > coalesce(?2, x'')
ORDER BY orders.id
LIMIT ?3
