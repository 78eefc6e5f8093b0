-- Reload a segment for its holder, and shut out every lease handed out before.
--
-- $1 product  $2 segment index  $3 the holder's fence  $4 how far the fence jumps ahead
-- Returns one row: stock, fence, epoch. Rule: R5. Waits for a settle in flight, so its outcome is counted.
UPDATE segments
SET fence = greatest(fence, $3) + $4
WHERE product_id = $1 AND index = $2
RETURNING allotted - taken AS stock, fence, epoch
