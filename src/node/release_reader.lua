local key, call, member = KEYS[1], redis.call, ':' .. ARGV[1]
local holders = key .. ':redlatch:holders'
local ends = call('GET', key) == 'redlatch:shared' and call('ZSCORE', holders, member)
if not ends then
  return -ARGV[3]
end
call('ZREM', holders, member)
local last = call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
if last and tonumber(last) < tonumber(ends) then
  redis.pcall('PEXPIREAT', key, last)
  last = call('EXISTS', key) == 1 and redis.pcall('PEXPIREAT', holders, last)
end
local head = not last and call('DEL', key, holders)
  and redis.pcall('ZRANGE', key .. ':redlatch:queue', 0, 0)[1]
if head then
  call('SET', key, 'redlatch:reserved:' .. head, 'PX', ARGV[2])
  call('SET', key .. ':redlatch:bell:' .. head, '', 'PX', ARGV[2])
end
return ARGV[3] + 0
