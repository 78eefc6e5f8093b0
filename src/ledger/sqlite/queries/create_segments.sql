-- Create a new product's segments.
--
-- ?1 product  ?2 units of each segment in index order, a JSON array
INSERT INTO segments (product_id, "index", allotted)
SELECT ?1, key, value FROM json_each(?2)
