-- Purpose: give a lease back, with the count lowered by what was sold under it.
--
-- KEYS[1] lock    KEYS[2] state
-- ARGV[1] token   ARGV[2] 'clean' or 'dirty'   ARGV[3] change of the count (negative: units were taken)
--
-- Replies: 1 released · 2 released, and somebody asked for it meanwhile · 0 the token holds the segment no more;
--          nothing changed
--
-- Rules: R5 (releasing clears `dirty`, unless the count may be wrong), R11 (a second run finds the lock gone).
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
if ARGV[2] == 'clean' and redis.call('HGET', KEYS[2], 'dirty') == ARGV[1] then
    -- Added as it comes: Lua would write the negative of 0 as "-0", which is no integer to Redis.
    redis.call('HINCRBY', KEYS[2], 'stock', ARGV[3])
    redis.call('HDEL', KEYS[2], 'dirty')
end
redis.call('DEL', KEYS[1])
return 1 + redis.call('HDEL', KEYS[2], 'wanted')
