-- List products in SKU order with the sums over their segments.
--
-- $1 only those after this SKU (null: from the start)  $2 at most so many
SELECT products.*, stock.allotted, stock.taken
FROM products
CROSS JOIN LATERAL (
    SELECT sum(allotted)::bigint AS allotted, sum(taken)::bigint AS taken
    FROM segments WHERE product_id = products.id
) AS stock
WHERE sku > coalesce($1, '')
ORDER BY sku
LIMIT $2
