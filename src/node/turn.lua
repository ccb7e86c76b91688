local key, queue, lease = KEYS[1], KEYS[1] .. ':redlatch:queue', KEYS[1] .. ':redlatch:lease:'
local held = redis.call('GET', key)
local head = redis.call('ZRANGE', queue, 0, 0)[1]
if held then
  if string.sub(held, 1, 38) ~= 'redlatch:reserved:' .. ARGV[1] then
    return -ARGV[4]
  end
elseif head and head ~= ARGV[1] then
  return -ARGV[4]
end
redis.call('SET', key, ARGV[2], 'PX', ARGV[3])
local left = math.min(redis.call('PTTL', lease .. ARGV[1]), tonumber(ARGV[3]))
if left > 0 then
  redis.call('SET', lease .. ARGV[1], '', 'PX', left)
end
local others = redis.call('ZCARD', queue) - (head == ARGV[1] and 1 or 0)
return {ARGV[4] + 0, 1, others > 0 and 1 or 0}
