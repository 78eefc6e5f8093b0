-- Move units between segments whose leases are all held. The caller rolls back unless every leg was changed.
--
-- $1 product  $2..$5 the legs: indexes, fences, epochs, units (negative for a giver)
-- Rules: R2, R3, R4, R10.
UPDATE segments
SET allotted = allotted + leg.units, fence = leg.fence
FROM unnest($2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[]) AS leg (index, fence, epoch, units)
WHERE segments.product_id = $1 AND segments.index = leg.index
    AND segments.fence <= leg.fence
    AND segments.epoch <= leg.epoch
    -- A giver keeps what is taken: a guard that counted too high is found out here, before the table's CHECK.
    AND segments.allotted + leg.units >= segments.taken
