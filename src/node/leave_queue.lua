local held = redis.pcall('GET', KEYS[1])
local queue = KEYS[1] .. ':redlatch:queue'
local was_first = redis.pcall('ZRANK', queue, ARGV[2]) == 0
redis.pcall('ZREM', queue, ARGV[2])
redis.pcall('DEL', KEYS[1] .. ':redlatch:lease:' .. ARGV[2])
redis.pcall('SET', KEYS[1] .. ':redlatch:bell:' .. ARGV[2], '', 'PX', 1)
local is_free = held == ARGV[1] or held == 'redlatch:reserved:' .. ARGV[2]
if is_free then
  redis.call('DEL', KEYS[1])
end
local is_shared = was_first and held == 'redlatch:shared'
local head = (is_free or is_shared) and redis.pcall('ZRANGE', queue, 0, 0)[1]
if head and is_free then
  redis.call('SET', KEYS[1], 'redlatch:reserved:' .. head, 'PX', ARGV[3])
end
if head and (is_free
  or string.match(redis.call('GET', KEYS[1] .. ':redlatch:lease:' .. head) or '', '^%d+s')) then
  redis.pcall('SET', KEYS[1] .. ':redlatch:bell:' .. head, '', 'PX', ARGV[3])
end
return held == ARGV[1] and ARGV[4] + 0 or -ARGV[4]
