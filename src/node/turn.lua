local queue = KEYS[1] .. ':redlatch:queue'
local held = redis.call('GET', KEYS[1])
local head = redis.call('ZRANGE', queue, 0, 0)[1]
if held then
  if held ~= 'redlatch:reserved:' .. ARGV[1] then
    return -ARGV[4]
  end
elseif head and head ~= ARGV[1] then
  return -ARGV[4]
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[1] .. ':redlatch:bell:' .. ARGV[1])
local lease = KEYS[1] .. ':redlatch:lease:'
local left = math.min(redis.call('PTTL', lease .. ARGV[1]), tonumber(ARGV[3]))
if left > 0 then
  redis.call('SET', lease .. ARGV[1], '', 'PX', left)
end
local following = redis.call('ZRANGE', queue, 1, 1)[1]
while following and redis.call('EXISTS', lease .. following) == 0 do
  redis.call('ZREM', queue, following)
  following = redis.call('ZRANGE', queue, 1, 1)[1]
end
return {ARGV[4] + 0, 1, following and 1 or 0}
