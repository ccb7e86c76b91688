for i = 1, #KEYS do
  if redis.call('GET', KEYS[i]) ~= ARGV[1] then
    return -ARGV[3]
  end
end
for i = 1, #KEYS do
  local left = redis.call('PTTL', KEYS[i])
  if left ~= -1 and left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
end
return ARGV[3] + 0
