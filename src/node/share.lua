local now, held = time(), redis.call('GET', key)
local permits, waiter, ends = tonumber(ARGV[3]), ARGV[5], now + ARGV[2]
if held and held ~= shared and (waiter == '' or held ~= reserved .. waiter) then
  return -ARGV[9]
end
if held ~= shared then
  redis.call('DEL', holders)
end
redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
local found, slot = find_holder(ARGV[1], permits), nil
local number = waiter ~= '' and redis.pcall('ZSCORE', queue, waiter)
number = type(number) == 'string' and tonumber(number)
if found then
  slot = tonumber(string.match(found, '^%d*')) or ''
  ends = math.max(ends, tonumber(redis.call('ZSCORE', holders, found)))
elseif number then
  local _, slots = called(32)
  slot = slots[waiter]
  if slot and permits > 0 and ARGV[4] ~= '' then
    slot = free_slot(slots_in_use(), permits, tonumber(ARGV[4]))
  end
else
  for _, name in ipairs(redis.pcall('ZRANGE', queue, 0, 31)) do
    local value = redis.call('GET', lease .. name)
    if not value then
      redis.call('ZREM', queue, name)
    elseif value ~= '' then
      return -ARGV[9]
    end
  end
  local readers = are_readers()
  if readers == nil or readers == (permits == 0) then
    slot = permits == 0 and '' or free_slot(slots_in_use(), permits, tonumber(ARGV[4]) or 0)
  end
end
if not slot or slot ~= '' and slot >= 1024 then
  return -ARGV[9]
end
local fence = 0
if KEYS[2] then
  local counter = redis.pcall('GET', KEYS[2])
  local digits = type(counter) == 'string' and string.match(counter, '^%d+$')
  if counter and not (digits and tonumber(digits) < 2^52 + 2^40) then
    return redis.error_reply('FENCE a counter of this lock is no number that can be raised')
  end
  fence = counter and tonumber(digits) + (permits > 0 and 1 or 0) or 0
  fence = math.max(tonumber(ARGV[7]), fence)
  local left = counter and redis.call('PTTL', KEYS[2]) or -2
  local token = string.format('%.0f', fence)
  if left == -1 then
    redis.call('SET', KEYS[2], token)
  else
    redis.call('SET', KEYS[2], token, 'PX', math.max(left, tonumber(ARGV[8])))
  end
end
redis.call('ZADD', holders, ends, slot .. ':' .. ARGV[1])
set_expiry(now)
if waiter ~= '' then
  if number and number > floor() then
    redis.call('SET', key .. ':redlatch:floor', number, 'PX', ARGV[6])
  end
  redis.pcall('ZREM', queue, waiter)
  redis.call('DEL', lease .. waiter, bell .. waiter)
  ring(ARGV[6])
end
return {ARGV[9] + 0, 1, fence, tonumber(slot) or -1}
