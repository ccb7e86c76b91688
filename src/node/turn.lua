local queue = KEYS[1] .. ':redlatch:queue'
local held = redis.call('GET', KEYS[1])
local head = redis.call('ZRANGE', queue, 0, 0)[1]
if held then
  if held ~= 'redlatch:reserved:' .. ARGV[1] then
    return -ARGV[5]
  end
elseif head and head ~= ARGV[1] then
  return -ARGV[5]
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[1] .. ':redlatch:bell:' .. ARGV[1])
local lease = KEYS[1] .. ':redlatch:lease:'
local left = math.min(redis.call('PTTL', lease .. ARGV[1]), tonumber(ARGV[3]))
if left > 0 then
  redis.call('SET', lease .. ARGV[1], '', 'PX', left)
end
local following = redis.call('ZRANGE', queue, 1, 1)[1]
left = following and redis.call('PTTL', lease .. following)
while left == -2 do
  redis.call('ZREM', queue, following)
  following = redis.call('ZRANGE', queue, 1, 1)[1]
  left = following and redis.call('PTTL', lease .. following)
end
if following and left > math.min(tonumber(ARGV[3]), tonumber(ARGV[4])) then
  redis.call('SET', KEYS[1] .. ':redlatch:bell:' .. following, '', 'PX', ARGV[4])
end
return {ARGV[5] + 0, 1, following and 1 or 0}
