if ARGV[2] == '' then
  redis.call('DEL', KEYS[1], KEYS[2])
else
  redis.call('SET', KEYS[2], ARGV[2])
  redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3])
end
if tonumber(ARGV[4]) > (floor() or -1) then
  redis.call('SET', KEYS[4], ARGV[4])
end
return {number}
