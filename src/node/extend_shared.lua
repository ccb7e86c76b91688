local now, member = time(), ARGV[1] .. ':' .. ARGV[2]
local ends = redis.call('GET', key) == shared and redis.call('ZSCORE', holders, member)
if not ends or tonumber(ends) <= now then
  return -ARGV[4]
end
if tonumber(ends) < now + ARGV[3] then
  redis.call('ZADD', holders, now + ARGV[3], member)
  set_expiry(now)
end
return ARGV[4] + 0
