-- A page of a product's orders, ids and keys only.
--
-- ?1 product  ?2 after this id  ?3 at most so many
SELECT id, customer_key FROM orders WHERE product_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3
