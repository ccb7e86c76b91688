local queue = KEYS[1] .. ':redlatch:queue'
local lease, bell = KEYS[1] .. ':redlatch:lease:', KEYS[1] .. ':redlatch:bell:'
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
redis.call('ZREM', queue, ARGV[1])
redis.call('DEL', lease .. ARGV[1], bell .. ARGV[1])
head = redis.call('ZRANGE', queue, 0, 0)[1]
while head and redis.call('EXISTS', lease .. head) == 0 do
  redis.call('ZREM', queue, head)
  head = redis.call('ZRANGE', queue, 0, 0)[1]
end
return {ARGV[4] + 0, 1, redis.call('ZCARD', queue)}
