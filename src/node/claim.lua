local locks, held, fence, found = tonumber(ARGV[1]), 0, 0, {}
local reserved, queue = 'redlatch:reserved:', KEYS[1] .. ':redlatch:queue'
local is_turn = string.sub(ARGV[2], 1, 18) == reserved
for i = 1, locks do
  local value = redis.call('GET', KEYS[i])
  if value and string.sub(value, 1, 18) == reserved then
    value = ARGV[2] ~= ARGV[3] and string.sub(value, 1, 38)
  end
  if value and (ARGV[2] == '' or value ~= ARGV[2]) then
    return -ARGV[8]
  end
  local head = is_turn and redis.call('ZRANGE', queue, 0, 0)[1]
  if not value and head and head ~= ARGV[7] then
    return -ARGV[8]
  end
  held, found[i] = value and held + 1 or held, value
end
for i = locks + 1, #KEYS do
  local counter = redis.pcall('GET', KEYS[i])
  local digits = type(counter) == 'string' and string.match(counter, '^%d+$')
  if counter and not (digits and tonumber(digits) < 2^52 + 2^40) then
    return redis.error_reply('FENCE a counter of this lock is no number that can be raised')
  end
  found[i] = counter
  fence = math.max(fence, tonumber(ARGV[5]), counter and tonumber(digits) + 1 or 0)
end
for i = 1, locks do
  local left = found[i] and ARGV[2] == ARGV[3] and redis.call('PTTL', KEYS[i]) or -2
  if left ~= -1 and left < tonumber(ARGV[4]) then
    redis.call('SET', KEYS[i], ARGV[3], 'PX', ARGV[4])
  end
end
local token = string.format('%.0f', fence)
for i = locks + 1, #KEYS do
  local left = found[i] and redis.call('PTTL', KEYS[i]) or -2
  if left == -1 then
    redis.call('SET', KEYS[i], token)
  else
    redis.call('SET', KEYS[i], token, 'PX', math.max(left, tonumber(ARGV[6])))
  end
end
local lease = KEYS[1] .. ':redlatch:lease:'
if is_turn then
  local left = math.min(redis.call('PTTL', lease .. ARGV[7]), tonumber(ARGV[4]))
  if left > 0 then
    redis.call('SET', lease .. ARGV[7], '', 'PX', left)
  end
elseif ARGV[7] ~= '' then
  redis.pcall('ZREM', queue, ARGV[7])
  redis.call('DEL', lease .. ARGV[7])
end
local is_new = (is_turn or held < locks) and 1 or 0
local waiting = redis.pcall('ZCARD', queue)
local others = type(waiting) == 'number' and waiting - (is_turn and 1 or 0) or 0
return {ARGV[8] + 0, is_new, fence, others > 0 and 1 or 0}
