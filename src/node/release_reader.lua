local key, call = KEYS[1], redis.call
local holders = key .. ':redlatch:holders'
if call('GET', key) ~= 'redlatch:shared' or call('ZREM', holders, ':' .. ARGV[1]) == 0 then
  return -ARGV[3]
end
local head = call('EXISTS', holders) == 0 and call('DEL', key)
  and redis.pcall('ZRANGE', key .. ':redlatch:queue', 0, 0)[1]
if head then
  call('SET', key, 'redlatch:reserved:' .. head, 'PX', ARGV[2])
  call('SET', key .. ':redlatch:bell:' .. head, '', 'PX', ARGV[2])
end
return ARGV[3] + 0
