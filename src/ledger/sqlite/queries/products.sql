-- List products in SKU order with the sums over their segments.
--
-- ?1 only those after this SKU (null: from the start)  ?2 at most so many
SELECT products.*, sum(allotted) AS allotted, sum(taken) AS taken
FROM products
JOIN segments ON segments.product_id = products.id
WHERE sku > coalesce(?1, '')
GROUP BY products.id
ORDER BY sku
LIMIT ?2
