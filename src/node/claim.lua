local locks, largest, held = tonumber(ARGV[1]), 2^53 - 1, 0
for i = 1, locks do
  local value = redis.call('GET', KEYS[i])
  if value and (ARGV[2] == '' or value ~= ARGV[2]) then
    return {0, 0}
  end
  held = value and held + 1 or held
end
local fence = 0
for i = locks + 1, #KEYS do
  local counter = redis.pcall('GET', KEYS[i])
  local number = counter and (type(counter) == 'string' and tonumber(counter) or -1)
  if number and not (number >= 0 and number < largest and number % 1 == 0) then
    return redis.error_reply('FENCE ' .. KEYS[i] .. ' is no counter')
  end
  fence = math.max(fence, number and number + 1 or tonumber(ARGV[5]))
end
for i = 1, locks do
  redis.call('SET', KEYS[i], ARGV[3], 'PX', ARGV[4])
end
for i = locks + 1, #KEYS do
  redis.call('SET', KEYS[i], string.format('%.0f', fence), 'PX', ARGV[6])
end
return {held == locks and 1 or 2, fence}
