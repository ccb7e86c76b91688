local is_kept = {}
for i = 1, #KEYS do
  local held = redis.call('GET', KEYS[i])
  is_kept[i] = held == ARGV[1]
  if not is_kept[i]
    and (ARGV[3] == '' or held and string.sub(held, 1, 18) ~= 'redlatch:reserved:') then
    return -ARGV[4]
  end
end
for i = 1, #KEYS do
  local left = is_kept[i] and redis.call('PTTL', KEYS[i]) or -2
  if left == -2 then
    redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
  elseif left ~= -1 and left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
end
return ARGV[4] + 0
