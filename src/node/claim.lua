local locks, held, fence = tonumber(ARGV[1]), 0, 0
for i = 1, locks do
  local value = redis.call('GET', KEYS[i])
  if value and (ARGV[2] == '' or value ~= ARGV[2]) then
    return {0, 0}
  end
  held = value and held + 1 or held
end
for i = locks + 1, #KEYS do
  local counter = redis.pcall('GET', KEYS[i])
  local digits = type(counter) == 'string' and string.match(counter, '^%d+$')
  if counter and not (digits and tonumber(digits) < 2^53 - 1) then
    return redis.error_reply('FENCE a counter of this lock is no number that can be raised')
  end
  fence = math.max(fence, tonumber(ARGV[5]), counter and tonumber(digits) + 1 or 0)
end
for i = 1, locks do
  if ARGV[2] ~= ARGV[3] or redis.call('PTTL', KEYS[i]) < tonumber(ARGV[4]) then
    redis.call('SET', KEYS[i], ARGV[3], 'PX', ARGV[4])
  end
end
for i = locks + 1, #KEYS do
  redis.call('SET', KEYS[i], string.format('%.0f', fence), 'PX', ARGV[6])
end
return {held == locks and 1 or 2, fence}
