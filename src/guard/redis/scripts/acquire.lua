-- Purpose: lease a segment, and learn its stock and fence in the same trip.
--
-- KEYS[1] lock    KEYS[2] state
-- ARGV[1] token   ARGV[2] time limit, ms   ARGV[3] '1': do not trust the count, the ledger says otherwise
--
-- Replies: {'leased', fence, epoch, stock}  stock -1: the holder must reload the segment before using it
--          {'empty'}                        clean and nothing left; not leased
--          {'busy', remaining ms}           somebody else holds it
--
-- Rules: R5 (acquiring sets `dirty`; dirty or missing means reload), R11 (the same token gets the same lease again).
-- A caller that finds the segment held leaves the mark `wanted`, so that the holder can make room for others.
-- `dirty` holds the token of the lease that knows the stock, so that a repeated acquire can tell whether it does.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
    redis.call('HSETNX', KEYS[2], 'wanted', '1')
    return {'busy', redis.call('PTTL', KEYS[1])}
end

local state = redis.call('HMGET', KEYS[2], 'stock', 'fence', 'epoch', 'dirty')
local stock, fence, epoch, dirty = state[1], state[2], state[3], state[4]
local known = stock and fence and epoch

if holder and fence then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
    local clean = known and not dirty and ARGV[3] ~= '1'
    if clean and tonumber(stock) <= 0 then
        return {'empty'}
    end
    dirty = clean and ARGV[1] or 'unknown'
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    fence = redis.call('HINCRBY', KEYS[2], 'fence', 1)
    redis.call('HSET', KEYS[2], 'dirty', dirty)
end

if known and dirty == ARGV[1] then
    return {'leased', tonumber(fence), tonumber(epoch), tonumber(stock)}
end
return {'leased', tonumber(fence), tonumber(epoch or 0), -1}
