local held = redis.pcall('GET', key)
local permits = tonumber(string.match(ARGV[4], '^%d+s(%d+) '))
local now, withdrawn = held == shared and time(), nil
if held == ARGV[3] then
  redis.call('DEL', key)
  held = false
elseif held == shared then
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
  withdrawn = permits and find_holder(ARGV[3], permits)
  if withdrawn then
    redis.call('ZREM', holders, withdrawn)
  end
  if redis.call('ZCARD', holders) > 0 then
    set_expiry(now)
  else
    redis.call('DEL', key)
    held = false
  end
end
local number = redis.call('ZSCORE', queue, ARGV[1])
if ARGV[2] ~= '0' then
  number = ARGV[2]
elseif not number then
  redis.call('ZREM', queue, '')
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
  number = math.max(last, floor()) + 1
  if number > 4503599627370496 then
    redis.call('DEL', queue, key .. ':redlatch:floor')
    number = 1
  end
end
redis.call('SET', lease .. ARGV[1], ARGV[4], 'PX', ARGV[5])
redis.call('ZADD', queue, number, ARGV[1])
if redis.call('PTTL', queue) < tonumber(ARGV[5]) then
  redis.call('PEXPIRE', queue, ARGV[5])
end
local head = redis.call('ZRANGE', queue, 0, 0)[1]
while redis.call('EXISTS', lease .. head) == 0 do
  redis.call('ZREM', queue, head)
  head = redis.call('ZRANGE', queue, 0, 0)[1]
end
local is_free = not held or type(held) == 'string' and string.sub(held, 1, 18) == reserved
if is_free and (held ~= reserved .. head or head == ARGV[1]) then
  redis.call('SET', key, reserved .. head, 'PX', ARGV[6])
end
if is_free and held ~= reserved .. head then
  redis.call('SET', bell .. head, '', 'PX', ARGV[6])
end
local is_mine = is_free and head == ARGV[1]
local left = redis.call('PTTL', key)
local kept = redis.call('PTTL', lease .. head)
if is_free and not is_mine and left > 0 and (kept == -1 or kept > left) then
  redis.call('PEXPIRE', lease .. head, left)
end
if permits and held == shared then
  if withdrawn then
    ring(ARGV[6])
  end
  local _, slots = called(32)
  is_mine = slots[ARGV[1]]
  if permits > 0 then
    left = left_until(redis.call('ZRANGE', holders, 0, 0, 'WITHSCORES')[2], now)
  end
end
return {
  ARGV[7] + 0, number + 0, redis.call('ZRANK', queue, ARGV[1]), is_mine and 1 or 0,
  left, redis.call('ZCARD', queue)
}
