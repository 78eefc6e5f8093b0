-- Insert a batch's orders, leaving alone those whose id or key is there already (R6). Part of a settle, whose
-- transaction has made sure of the lease before.
--
-- ?1 product  ?2 segment index  ?3 status  ?4 the orders: a JSON array of [id, customer key, quantity, customer id],
-- ids and keys as 32 hex digits
-- Returns the ids and quantities that were inserted.
INSERT INTO orders (id, customer_key, product_id, quantity, segment, status, customer_id)
SELECT unhex(value ->> 0), unhex(value ->> 1), ?1, value ->> 2, ?2, ?3, value ->> 3
FROM json_each(?4)
WHERE true
ON CONFLICT DO NOTHING
RETURNING id, quantity
