-- Count the order keys that stand for more than one order: 0, unless the unique index is broken.
--
-- ?1 product
SELECT count(*) FROM (
    SELECT customer_key FROM orders WHERE product_id = ?1 GROUP BY customer_key HAVING count(*) > 1
)
