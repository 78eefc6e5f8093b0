-- Find the orders that have one of these ids or one of these customer keys.
--
-- $1 ids  $2 customer keys
SELECT orders.id, products.sku, quantity, customer_id, segment, status, customer_key
FROM orders
JOIN products ON products.id = orders.product_id
WHERE orders.id = ANY ($1) OR customer_key = ANY ($2)
