local head
local held = redis.pcall('GET', KEYS[1])
local queue = KEYS[1] .. ':redlatch:queue'
redis.pcall('ZREM', queue, ARGV[2])
redis.pcall('DEL', KEYS[1] .. ':redlatch:lease:' .. ARGV[2])
redis.pcall('SET', KEYS[1] .. ':redlatch:bell:' .. ARGV[2], '', 'PX', 1)
if held == ARGV[1] or held == 'redlatch:reserved:' .. ARGV[2] then
  redis.call('DEL', KEYS[1])
  head = redis.pcall('ZRANGE', queue, 0, 0)[1]
end
if head then
  redis.call('SET', KEYS[1], 'redlatch:reserved:' .. head, 'PX', ARGV[3])
  redis.pcall('SET', KEYS[1] .. ':redlatch:bell:' .. head, '', 'PX', ARGV[3])
end
return held == ARGV[1] and ARGV[4] + 0 or -ARGV[4]
