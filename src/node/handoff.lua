local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return -ARGV[4]
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
local waiting = redis.pcall('ZCARD', KEYS[1] .. ':redlatch:queue')
return {ARGV[4] + 0, held and 0 or 1, type(waiting) == 'number' and waiting or 0}
