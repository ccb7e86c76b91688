local locks = tonumber(ARGV[1])
for i = 1, locks do
  if redis.call('GET', KEYS[i]) ~= ARGV[2] then
    return 0
  end
end
for i = locks + 1, #KEYS do
  local counter = redis.call('GET', KEYS[i])
  if not counter or tonumber(counter) < tonumber(ARGV[3]) then
    redis.call('SET', KEYS[i], ARGV[3], 'PX', ARGV[4])
  end
end
return 1
