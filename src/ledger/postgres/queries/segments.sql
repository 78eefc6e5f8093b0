-- A product's segments in index order.
--
-- $1 product
SELECT index, allotted, taken, fence, epoch FROM segments WHERE product_id = $1 ORDER BY index
