local locks, held, fence, found = tonumber(ARGV[1]), 0, 0, {}
for i = 1, locks do
  local value = redis.call('GET', KEYS[i])
  if value and (ARGV[2] == '' or value ~= ARGV[2]) then
    return -ARGV[7]
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
return {ARGV[7] + 0, held == locks and 0 or 1, fence}
