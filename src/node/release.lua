if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -ARGV[3]
end
redis.call('DEL', KEYS[1])
local head = redis.pcall('ZRANGE', KEYS[1] .. ':redlatch:queue', 0, 0)[1]
if head then
  redis.call('SET', KEYS[1], 'redlatch:reserved:' .. head, 'PX', ARGV[2])
  redis.pcall('SET', KEYS[1] .. ':redlatch:bell:' .. head, '', 'PX', ARGV[2])
end
return ARGV[3] + 0
