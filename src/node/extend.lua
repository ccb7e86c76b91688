if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -ARGV[3]
end
local left = redis.call('PTTL', KEYS[1])
if left ~= -1 and left < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return ARGV[3] + 0
