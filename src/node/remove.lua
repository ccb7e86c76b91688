local value, number = redis.call('GET', KEYS[1]), ARGV[#ARGV] + 0
for i = 2, #ARGV - 1 do
  if value == ARGV[i] then
    redis.call('DEL', KEYS[1])
    local head = redis.pcall('ZRANGE', KEYS[1] .. ':redlatch:queue', 0, 0)[1]
    if head then
      redis.call('SET', KEYS[1], 'redlatch:reserved:' .. head, 'PX', ARGV[1])
      redis.pcall('SET', KEYS[1] .. ':redlatch:bell:' .. head, '', 'PX', ARGV[1])
    end
    return number
  end
end
return -number
