local now, held = time(), redis.call('GET', key)
local slot, value, ends = ARGV[1], ARGV[2], now + ARGV[3]
if held and held ~= shared and string.sub(held, 1, 18) ~= reserved then
  return -ARGV[4]
end
if held == shared then
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
else
  redis.call('DEL', holders)
end
local readers = are_readers()
if readers ~= nil and readers ~= (slot == '') then
  return -ARGV[4]
end
local before, is_taken = find_holder(value, slot == '' and 0 or 1), false
for _, holder in ipairs(slot == '' and {} or redis.call('ZRANGE', holders, 0, -1)) do
  is_taken = is_taken or string.match(holder, '^%d*') == slot and holder ~= before
end
if is_taken and not before then
  return -ARGV[4]
end
if before then
  ends = math.max(ends, tonumber(redis.call('ZSCORE', holders, before)))
  redis.call('ZREM', holders, before)
end
redis.call('ZADD', holders, ends, (is_taken and slot + 1024 or slot) .. ':' .. value)
set_expiry(now)
return is_taken and -ARGV[4] or ARGV[4] + 0
