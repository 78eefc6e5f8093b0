-- Change one segment's allotment as part of a gathering. The caller rolls back unless every leg was changed.
--
-- ?1 product  ?2 segment index  ?3 fence  ?4 epoch  ?5 units (negative for a giver)
UPDATE segments
SET allotted = allotted + ?5, fence = ?3
WHERE product_id = ?1 AND "index" = ?2 AND fence <= ?3 AND epoch <= ?4
    -- A giver keeps what is taken (R4): a guard that counted too high is found out here.
    AND allotted + ?5 >= taken
