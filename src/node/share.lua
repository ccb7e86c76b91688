local now, held = time(), redis.call('GET', key)
local permits, waiter = tonumber(ARGV[3]), ARGV[5]
if held and held ~= shared and (waiter == '' or held ~= reserved .. waiter) then
  return -ARGV[9]
end
if held == shared then
  redis.call('ZREMRANGEBYSCORE', holders, '-inf', now)
else
  redis.call('DEL', holders)
end
local number, slot = waiter ~= '' and redis.call('ZSCORE', queue, waiter), nil
if number then
  local _, slots = called(32)
  slot = slots[waiter]
else
  for _, name in ipairs(redis.call('ZRANGE', queue, 0, 31)) do
    local value = redis.call('GET', lease .. name)
    if not value then
      redis.call('ZREM', queue, name)
    elseif value ~= '' then
      return -ARGV[9]
    end
  end
  slot = permits == 0 and '' or free_slot(slots_in_use(), permits, tonumber(ARGV[4]))
end
if not slot then
  return -ARGV[9]
end
local fence = 0
if KEYS[2] then
  local counter = redis.pcall('GET', KEYS[2])
  local digits = type(counter) == 'string' and string.match(counter, '^%d+$')
  if counter and not (digits and tonumber(digits) < 2^52 + 2^40) then
    return redis.error_reply('FENCE a counter of this lock is no number that can be raised')
  end
  fence = counter and tonumber(digits) or 0
  if permits > 0 then
    fence = math.max(tonumber(ARGV[7]), counter and fence + 1 or 0)
  end
  local left = counter and redis.call('PTTL', KEYS[2]) or -2
  local token = string.format('%.0f', fence)
  if left == -1 then
    redis.call('SET', KEYS[2], token)
  elseif fence > 0 then
    redis.call('SET', KEYS[2], token, 'PX', math.max(left, tonumber(ARGV[8])))
  end
end
redis.call('ZADD', holders, now + ARGV[2], slot .. ':' .. ARGV[1])
set_expiry(now)
if waiter ~= '' then
  local floor = key .. ':redlatch:floor'
  local before = number and string.match(redis.call('GET', floor) or '', '^%d+$')
  if number and tonumber(number) > tonumber(before or 0) then
    redis.call('SET', floor, number, 'PX', ARGV[6])
  end
  redis.call('ZREM', queue, waiter)
  redis.call('DEL', lease .. waiter, bell .. waiter)
  ring(ARGV[6])
end
return {ARGV[9] + 0, 1, fence, tonumber(slot) or -1}
