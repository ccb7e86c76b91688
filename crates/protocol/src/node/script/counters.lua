-- Fencing counters. The value of a counter, or nothing; one that is not a number below `most` is an
-- error.

local function read_counter(name, most)
  local counter = redis.pcall('GET', name)
  local digits = type(counter) == 'string' and string.match(counter, '^%d+$')
  if counter and not (digits and tonumber(digits) < most) then
    return nil, redis.error_reply('FENCE a counter of this lock is no number that can be raised')
  end
  return digits
end

-- Never shortens the ttl of a counter.
local function write_counter(name, token, ttl)
  local left = redis.call('PTTL', name)
  if left == -1 then
    redis.call('SET', name, token)
  else
    redis.call('SET', name, token, 'PX', math.max(left, tonumber(ttl)))
  end
end
