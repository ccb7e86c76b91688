local now, held = time(), redis.call('GET', key)
local slot, member, ends = ARGV[1], ARGV[1] .. ':' .. ARGV[2], now + ARGV[3]
if held and held ~= shared and string.sub(held, 1, 18) ~= reserved then
  return -ARGV[4]
end
if held == shared then
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
  ends = math.max(ends, tonumber(redis.call('ZSCORE', holders, member) or 0))
else
  redis.call('DEL', holders)
end
if slot ~= '' then
  for _, holder in ipairs(redis.call('ZRANGE', holders, 0, -1)) do
    local other, value = string.match(holder, '^(%d*):(.*)$')
    if other == slot and value ~= ARGV[2] then
      return -ARGV[4]
    end
  end
  local before = find_holder(ARGV[2], 1)
  if before then
    redis.call('ZREM', holders, before)
  end
end
redis.call('ZADD', holders, ends, member)
set_expiry(now)
return ARGV[4] + 0
