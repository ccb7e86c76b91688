local holders, member = key .. ':redlatch:holders', ':' .. ARGV[1]
local ends = redis.call('GET', key) == 'redlatch:shared' and redis.call('ZSCORE', holders, member)
if not ends then
  return -ARGV[2]
end
redis.call('ZREM', holders, member)
local last = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
if last and tonumber(last) < tonumber(ends) then
  redis.pcall('PEXPIREAT', key, last)
  last = redis.call('EXISTS', key) == 1 and redis.pcall('PEXPIREAT', holders, last)
end
if not last then
  redis.call('DEL', key, holders)
  reserve()
end
return ARGV[2] + 0
