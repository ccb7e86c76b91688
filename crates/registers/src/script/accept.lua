-- Accepts a value, and promises the ballot that follows: `ARGV[2]` the ballot, `ARGV[3]` the one
-- that follows, `ARGV[4]` the value. If it was accepted before, nothing changes. Refuses as
-- `prepare.lua`.
--
-- A value that is not longer than the one before, such as that of a deletion, is accepted also at
-- `maxmemory`.
--
-- Late, or once more: If it was carried out before, nothing. If a higher ballot was promised since,
-- refused. Otherwise the value is accepted on this node: whether it is current, the next prepare of
-- a majority decides.

if accepted and string.sub(accepted, 1, 36) == ARGV[2] then
  return {number}
end
local refusal = outbid(ARGV[2])
if refusal then
  return refusal
end
local value = ARGV[2] .. ARGV[4]
put(KEYS[2], ARGV[3], promise and accepted and #value <= #accepted)
redis.call('SET', KEYS[1], value)
return {number}
