-- A page of a product's orders, ids and keys only.
--
-- $1 product  $2 after this id (null: from the start)  $3 at most so many
SELECT id, customer_key FROM orders
WHERE product_id = $1 AND id > coalesce($2, '00000000-0000-0000-0000-000000000000'::uuid)
ORDER BY id
LIMIT $3
