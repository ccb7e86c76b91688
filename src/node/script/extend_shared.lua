if redis.call('GET', key) ~= shared then
  return -ARGV[4]
end
local now, member = time(), ARGV[1] .. ':' .. ARGV[2]
redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
local ends = redis.call('ZSCORE', holders, member)
if not ends then
  return -ARGV[4]
end
if tonumber(ends) < now + ARGV[3] then
  redis.call('ZADD', holders, now + ARGV[3], member)
  set_expiry(now)
end
return ARGV[4] + 0
