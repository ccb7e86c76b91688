local function enter(waiter, number)
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
  redis.call('SET', lease .. waiter, ARGV[4], 'PX', ARGV[5])
  redis.call('ZADD', queue, number, waiter)
  if redis.call('PTTL', queue) < tonumber(ARGV[5]) then
    redis.call('PEXPIRE', queue, ARGV[5])
  end
  local head = redis.call('ZRANGE', queue, 0, 0)[1]
  while redis.call('EXISTS', lease .. head) == 0 do
    redis.call('ZREM', queue, head)
    head = redis.call('ZRANGE', queue, 0, 0)[1]
  end
  return number
end

local function keep_longer(held, left, grace)
  local is_left = grace and string.sub(held, 1, 14) == 'redlatch:left:'
  if is_left and grace == 0 then
    redis.call('SET', key, 'redlatch:left:1000' .. string.sub(held, 16), 'PX', left + 1000)
  elseif grace == 0 and redis.call('ZCARD', queue) > 1 then
    redis.call('SET', key, string.sub(held, 1, 38) .. 1000, 'PX', left + 1000)
  end
end

local held, waiter = redis.pcall('GET', key), ARGV[1]
local permits = tonumber(string.match(ARGV[4], '^%d+s(%d+) '))
local now = held == shared and time()
if held == ARGV[3] then
  redis.call('DEL', key)
  held = false
elseif held == shared then
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local withdrawn = permits and find_holder(ARGV[3], permits)
  if withdrawn then
    redis.call('ZREM', holders, withdrawn)
    redis.call('ZREM', permits_in_use, ARGV[3])
  end
  if redis.call('ZCARD', holders) > 0 then
    set_expiry(now)
  else
    redis.call('DEL', key)
    held = false
  end
end
local first, left, grace = kept(held)
local number, is_late = redis.call('ZSCORE', queue, waiter), false
if grace and left <= 0 then
  held, is_late = false, pass_over(first, waiter)
elseif held == shared then
  is_late = pass_over_called(now, waiter)
end
local was_out = ARGV[2] ~= '0' and (is_late or not number)
if not is_late then
  number = enter(waiter, number)
end
local is_mine
if held == shared then
  is_mine = call_waiters(now)[waiter]
elseif not held or first and redis.call('ZRANGE', queue, 0, 0)[1] ~= first then
  is_mine = reserve() == waiter
else
  is_mine = first == waiter
  keep_longer(held, left, grace)
end
held = redis.pcall('GET', key)
first, left = kept(held)
if permits and permits > 0 and held == shared then
  left = left_until(redis.call('ZRANGE', holders, 0, 0, 'WITHSCORES')[2], now or time())
end
local place = not is_late and redis.call('ZRANK', queue, waiter)
local waiting = redis.call('ZCARD', queue) + (place and 0 or 1)
return {
  ARGV[6] + 0, (number or math.max(ARGV[2], 1)) + 0, place or waiting - 1,
  (is_mine and 1 or 0) + (was_out and 2 or 0), left, waiting
}
