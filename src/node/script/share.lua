local now, held = time(), redis.call('GET', key)
local permits, waiter, ends = tonumber(ARGV[3]), ARGV[5], now + ARGV[2]
if held and held ~= shared and (waiter == '' or string.sub(held, 1, 38) ~= reserved .. waiter) then
  return -ARGV[8]
end
local is_free, found, slot = held ~= shared, false, nil
if is_free then
  redis.call('DEL', holders, permits_in_use, calls)
else
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
  found = find_holder(ARGV[1], permits)
end
local function first_free()
  local first = (tonumber(ARGV[4]) or 0) % permits
  return is_free and first or free_slot(first, permits) or free_slot(0, first)
end
local number = waiter ~= '' and redis.pcall('ZSCORE', queue, waiter)
number = type(number) == 'string' and tonumber(number)
if found then
  slot = tonumber(string.match(found, '^%d*')) or ''
  ends = math.max(ends, tonumber(redis.call('ZSCORE', holders, found)))
elseif number then
  local _, slots = called(32)
  slot = slots[waiter]
  if slot and permits > 0 and ARGV[4] ~= '' then
    slot = first_free()
  end
else
  for _, name in ipairs(redis.pcall('ZRANGE', queue, 0, 31)) do
    local value = redis.call('GET', lease .. name)
    if not value then
      redis.call('ZREM', queue, name)
    elseif value ~= '' then
      return -ARGV[8]
    end
  end
  local readers = not is_free and are_readers()
  if is_free or readers == nil or readers == (permits == 0) then
    slot = permits == 0 and '' or first_free()
  end
end
if not slot then
  return -ARGV[8]
end
local fence = 0
if KEYS[2] then
  local counter = redis.pcall('GET', KEYS[2])
  local digits = type(counter) == 'string' and string.match(counter, '^%d+$')
  if counter and not (digits and tonumber(digits) < 2^52 + 2^40) then
    return redis.error_reply('FENCE a counter of this lock is no number that can be raised')
  end
  fence = counter and tonumber(digits) + (permits > 0 and 1 or 0) or 0
  fence = math.max(tonumber(ARGV[6]), fence)
  local left = counter and redis.call('PTTL', KEYS[2]) or -2
  local token = string.format('%.0f', fence)
  if left == -1 then
    redis.call('SET', KEYS[2], token)
  else
    redis.call('SET', KEYS[2], token, 'PX', math.max(left, tonumber(ARGV[7])))
  end
end
redis.call('ZADD', holders, ends, slot .. ':' .. ARGV[1])
if slot ~= '' then
  redis.call('ZADD', permits_in_use, slot, ARGV[1])
end
set_expiry(now)
if waiter ~= '' then
  if number and number > floor() then
    redis.call('SET', key .. ':redlatch:floor', number, 'PX', 2000)
  end
  redis.pcall('ZREM', queue, waiter)
  redis.call('ZREM', calls, waiter)
  redis.call('DEL', lease .. waiter)
  call_waiters(now)
end
return {ARGV[8] + 0, 1, fence, tonumber(slot) or -1}
