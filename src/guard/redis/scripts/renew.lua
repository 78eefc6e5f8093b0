-- Purpose: start a lease's time limit anew.
--
-- KEYS[1] lock
-- ARGV[1] token   ARGV[2] time limit, ms
--
-- Replies: 1 renewed · 0 the token holds the segment no more
--
-- Rules: R11 (a second run renews once more).
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
