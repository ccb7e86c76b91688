local ours = 0
for i = 1, #KEYS do
  if redis.pcall('GET', KEYS[i]) == ARGV[1] then
    ours = ours + redis.call('DEL', KEYS[i])
    local head = redis.pcall('ZRANGE', KEYS[i] .. ':redlatch:queue', 0, 0)[1]
    if head then
      redis.call('SET', KEYS[i], 'redlatch:reserved:' .. head, 'PX', ARGV[2])
      redis.pcall('SET', KEYS[i] .. ':redlatch:bell:' .. head, '', 'PX', ARGV[2])
    end
  end
end
return ours == #KEYS and ARGV[3] + 0 or -ARGV[3]
