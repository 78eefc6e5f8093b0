-- Add up the live orders of a product, segment by segment, for the audit.
--
-- ?1 product
SELECT segment, sum(quantity) AS live_units
FROM orders
WHERE product_id = ?1 AND status IN (0, 1)
GROUP BY segment
