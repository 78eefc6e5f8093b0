-- Find the orders that have one of these ids or one of these customer keys.
--
-- ?1 ids  ?2 customer keys; both JSON arrays of 32 hex digits
SELECT orders.id, products.sku, quantity, customer_id, segment, status, customer_key
FROM orders
JOIN products ON products.id = orders.product_id
WHERE orders.id IN (SELECT unhex(value) FROM json_each(?1))
    OR customer_key IN (SELECT unhex(value) FROM json_each(?2))
