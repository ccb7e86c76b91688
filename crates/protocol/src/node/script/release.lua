if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -ARGV[2]
end
if not redis.pcall('ZRANGE', KEYS[1] .. ':redlatch:queue', 0, 0)[1] then
  redis.call('DEL', KEYS[1])
  return ARGV[2] + 0
end
