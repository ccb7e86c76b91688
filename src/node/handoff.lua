local queue = KEYS[1] .. ':redlatch:queue'
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return -ARGV[5]
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
if ARGV[4] ~= '' then
  redis.pcall('ZREM', queue, ARGV[4])
  redis.call('DEL', KEYS[1] .. ':redlatch:lease:' .. ARGV[4])
end
local following = redis.pcall('ZRANGE', queue, 0, 0)[1]
return {ARGV[5] + 0, held and 0 or 1, following and 1 or 0}
