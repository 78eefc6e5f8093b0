-- Purpose: take over what the ledger says of a segment, still under its lease.
--
-- KEYS[1] lock    KEYS[2] state
-- ARGV[1] token   ARGV[2] stock   ARGV[3] fence   ARGV[4] epoch
--
-- Replies: 1 reloaded · 0 the token holds the segment no more; nothing changed
--
-- Rules: R5 (the ledger first, then Redis; `dirty` stays until the release, but its holder knows the stock now),
-- R11 (a second run writes the same).
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call('HSET', KEYS[2], 'stock', ARGV[2], 'fence', ARGV[3], 'epoch', ARGV[4], 'dirty', ARGV[1])
return 1
