-- Settle one batch: insert its orders and raise the segment's `taken`, both or nothing.
--
-- $1 product  $2 segment index  $3 fence  $4 epoch  $5 units of the whole batch  $6 status
-- $7..$10 the orders: ids, customer keys, quantities, customer ids
-- Returns one row: whether the lease was good, and the ids that were not inserted.
--
-- Rules: R3 (fence), R4 (never more than allotted), R6 (an id or a key that is there already is left alone and
-- reported), R10 (epoch).
--
-- Where no repetition is expected it runs without its tolerance for them, and fails as a whole if there is one: see
-- settle.rs.
WITH batch AS (
    SELECT * FROM unnest($7::uuid[], $8::uuid[], $9::integer[], $10::text[])
        AS batch (id, customer_key, quantity, customer_id)
), leased AS MATERIALIZED (
    -- Locks the row before anything is inserted; a holder that was overtaken finds no row, and so inserts nothing.
    SELECT product_id, index FROM segments
    WHERE product_id = $1 AND index = $2
        AND fence <= $3
        AND epoch <= $4
        AND taken + $5 <= allotted
    FOR NO KEY UPDATE
), inserted AS (
    INSERT INTO orders (id, customer_key, product_id, quantity, segment, status, customer_id)
    SELECT batch.id, batch.customer_key, leased.product_id, batch.quantity, leased.index, $6, batch.customer_id
    FROM leased, batch
    -- One order for all batches: two of them with the same keys wait for each other, and never in a ring.
    ORDER BY batch.customer_key
    ON CONFLICT DO NOTHING
    RETURNING id, quantity
), settled AS (
    UPDATE segments
    -- Only what was inserted counts: an order that was known already takes no second unit. Reading `inserted` here is
    -- also what makes the row be locked and the orders be inserted before the row is changed.
    SET taken = taken + (SELECT coalesce(sum(quantity), 0) FROM inserted), fence = $3
    WHERE product_id = $1 AND index = $2
        AND fence <= $3
        AND epoch <= $4
        AND taken + $5 <= allotted
    RETURNING index
)
SELECT
    EXISTS (SELECT FROM settled) AS settled,
    ARRAY(SELECT id FROM batch EXCEPT ALL SELECT id FROM inserted) AS already_known
