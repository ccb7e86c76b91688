local value, waiter, linger = ARGV[1], ARGV[3], ARGV[4]
local holders, calls = key .. ':redlatch:holders', key .. ':redlatch:called'
local permits_in_use = key .. ':redlatch:permits'
local held, found, was_first = redis.pcall('GET', key), false, false
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function call_next()
  local claim
  local are_permits = string.find(redis.call('ZRANGE', holders, 0, 0)[1], '^%d')
  for _, name in ipairs(redis.pcall('ZRANGE', queue, 0, 31)) do
    if claim then
      return tell(name, 'w' .. claim)
    elseif not redis.pcall('ZSCORE', calls, name) then
      local is_permit = string.find(redis.call('GET', lease .. name) or '', '^%d+s[1-9]')
      if not (are_permits and is_permit) then
        return was_first and tell(name, 'w0')
      end
      claim = tell(name, 'r')
      if claim then
        redis.call('ZADD', calls, now + claim, name)
        redis.call('PEXPIRE', calls, claim + 1000)
      end
    end
  end
end

if waiter ~= '' then
  was_first = redis.pcall('ZRANK', queue, waiter) == 0
  redis.pcall('ZREM', queue, waiter)
  redis.pcall('ZREM', calls, waiter)
  redis.call('DEL', lease .. waiter)
end
if held == 'redlatch:shared' then
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local slot = ARGV[2] == '0' and '' or redis.call('ZSCORE', permits_in_use, value)
  found = slot and slot .. ':' .. value
  found = found and redis.call('ZREM', holders, found) == 1 and found
  if found and linger ~= '' then
    redis.call('ZADD', holders, now + linger, found)
  elseif found then
    redis.call('ZREM', permits_in_use, value)
  end
  local last = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
  if last then
    local left = math.floor(math.min(last - now, 2^42))
    redis.call('PEXPIRE', holders, left)
    redis.call('PEXPIRE', permits_in_use, left)
    redis.call('SET', key, held, 'PX', left)
  else
    redis.call('DEL', key, permits_in_use)
    held = false
  end
elseif waiter ~= '' and type(held) == 'string'
  and string.sub(held, 1, 38) == 'redlatch:reserved:' .. waiter then
  redis.call('DEL', key)
  held = false
end
if not held then
  reserve()
elseif found and linger ~= '' then
  tell_at(0, 'w' .. linger)
elseif held == 'redlatch:shared' and (found or was_first) then
  call_next()
end
return found and ARGV[5] + 0 or -ARGV[5]
