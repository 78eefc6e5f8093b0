-- Whether a lease may change its segment. The first half of a settle: R3 (fence), R4 (never more than allotted), R10 (epoch).
--
-- ?1 product  ?2 segment index  ?3 fence  ?4 epoch  ?5 units of the whole batch
SELECT count(*) FROM segments
WHERE product_id = ?1 AND "index" = ?2 AND fence <= ?3 AND epoch <= ?4 AND taken + ?5 <= allotted
