-- Raise a segment's `taken` by what was inserted, and store the fence. The second half of a settle.
--
-- ?1 product  ?2 segment index  ?3 fence  ?4 units inserted
UPDATE segments SET taken = taken + ?4, fence = ?3 WHERE product_id = ?1 AND "index" = ?2
