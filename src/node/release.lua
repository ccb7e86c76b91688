if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -ARGV[2]
end
redis.call('DEL', KEYS[1])
return ARGV[2] + 0
