local now, held = time(), redis.call('GET', key)
local slot, value, ends = ARGV[1], ARGV[2], now + ARGV[3]
if held and held ~= shared and string.sub(held, 1, 18) ~= reserved then
  return -ARGV[4]
end
if held == shared then
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
else
  redis.call('DEL', holders, permits_in_use, calls)
end
local readers = are_readers()
if readers ~= nil and readers ~= (slot == '') then
  return -ARGV[4]
end
local before = find_holder(value, slot == '' and 0 or 1)
if before then
  ends = math.max(ends, tonumber(redis.call('ZSCORE', holders, before)))
  redis.call('ZREM', holders, before)
  redis.call('ZREM', permits_in_use, value)
end
if slot ~= '' and not free_slot(slot + 0, slot + 1) then
  set_expiry(now)
  return -ARGV[4]
end
redis.call('ZADD', holders, ends, slot .. ':' .. value)
if slot ~= '' then
  redis.call('ZADD', permits_in_use, slot, value)
end
set_expiry(now)
return ARGV[4] + 0
