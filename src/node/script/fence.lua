local locks, found, is_shared = tonumber(ARGV[1]), {}, false
for i = 1, locks do
  local held = redis.call('GET', KEYS[i])
  if held == 'redlatch:shared' then
    is_shared = true
    held = redis.call('ZSCORE', KEYS[i] .. ':redlatch:holders', ARGV[2]) and ARGV[2]
  end
  if held ~= ARGV[2] then
    return -ARGV[5]
  end
end
for i = locks + 1, #KEYS do
  local counter = redis.pcall('GET', KEYS[i])
  local digits = type(counter) == 'string' and string.match(counter, '^%d+$')
  if counter and not digits then
    return redis.error_reply('FENCE a counter of this lock is no number')
  end
  if counter and tonumber(digits) > tonumber(ARGV[3]) and not is_shared then
    return -ARGV[5]
  end
  found[i] = counter
end
for i = locks + 1, #KEYS do
  local left = found[i] and redis.call('PTTL', KEYS[i]) or -2
  local token = ARGV[3]
  if found[i] and tonumber(found[i]) > tonumber(token) then
    token = found[i]
  end
  if left == -1 then
    redis.call('SET', KEYS[i], token)
  else
    redis.call('SET', KEYS[i], token, 'PX', math.max(left, tonumber(ARGV[4])))
  end
end
return ARGV[5] + 0
