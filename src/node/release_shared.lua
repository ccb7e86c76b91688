local key, value, waiter, linger = KEYS[1], ARGV[1], ARGV[3], ARGV[4]
local queue, holders = key .. ':redlatch:queue', key .. ':redlatch:holders'
local lease, bell = key .. ':redlatch:lease:', key .. ':redlatch:bell:'
local held, found, was_first = redis.pcall('GET', key), false, false
if waiter ~= '' then
  was_first = redis.pcall('ZRANK', queue, waiter) == 0
  redis.pcall('ZREM', queue, waiter)
  redis.call('DEL', lease .. waiter)
  redis.call('SET', bell .. waiter, '', 'PX', 1)
end
if held == 'redlatch:shared' then
  local clock = redis.call('TIME')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
  found = ARGV[2] == '0' and ':' .. value
  for _, holder in ipairs(found and {} or redis.call('ZRANGE', holders, 0, -1)) do
    found = found or string.match(holder, '^%d+:(.*)$') == value and holder
  end
  found = found and redis.call('ZREM', holders, found) == 1 and found
  if found and linger ~= '' then
    redis.call('ZADD', holders, now + linger, found)
  end
  local last = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
  if last then
    local left = math.floor(math.min(last - now, 2^42))
    redis.call('PEXPIRE', holders, left)
    redis.call('SET', key, held, 'PX', left)
  else
    redis.call('DEL', key)
    held = false
  end
elseif waiter ~= '' and held == 'redlatch:reserved:' .. waiter then
  redis.call('DEL', key)
  held = false
end
local head = redis.pcall('ZRANGE', queue, 0, 0)[1]
if head and not held then
  redis.call('SET', key, 'redlatch:reserved:' .. head, 'PX', ARGV[5])
  redis.call('SET', bell .. head, '', 'PX', ARGV[5])
elseif head and held == 'redlatch:shared' and (found or was_first) then
  local permits = tonumber(string.match(redis.call('GET', lease .. head) or '', '^%d+s(%d+) '))
  local slot = found and tonumber(string.match(found, '^%d+'))
  if linger ~= '' or permits and (was_first or slot and slot % 1024 < permits) then
    redis.call('SET', bell .. head, '', 'PX', ARGV[5])
    if redis.call('PTTL', lease .. head) > tonumber(ARGV[5]) then
      redis.call('PEXPIRE', lease .. head, ARGV[5])
    end
  end
end
return found and ARGV[6] + 0 or -ARGV[6]
