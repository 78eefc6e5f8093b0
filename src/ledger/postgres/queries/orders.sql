-- List orders of every product and customer in order of their ids, which is the order of time.
--
-- $1 status (null: any)  $2 after this id (null: from the start)  $3 at most so many
SELECT orders.id, products.sku, quantity, customer_id, segment, status, customer_key
FROM orders
JOIN products ON products.id = orders.product_id
WHERE ($1::smallint IS NULL OR status = $1)
    -- An OR would keep the index from beginning behind the id, and every page would read all pages before it.
    AND orders.id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY orders.id
LIMIT $3
