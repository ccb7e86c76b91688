local ours = 0
for i = 1, #KEYS do
  if redis.pcall('GET', KEYS[i]) == ARGV[1] then
    ours = ours + redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
end
if ARGV[3] ~= '' then
  redis.pcall('ZREM', KEYS[1] .. ':redlatch:queue', ARGV[3])
  local bell = KEYS[1] .. ':redlatch:bell:' .. ARGV[3]
  redis.pcall('SET', bell, '', 'PX', 1000)
  redis.pcall('DEL', KEYS[1] .. ':redlatch:lease:' .. ARGV[3], bell)
end
local head = redis.pcall('ZRANGE', KEYS[1] .. ':redlatch:queue', 0, 0)[1]
if head then
  redis.pcall('SET', KEYS[1] .. ':redlatch:bell:' .. head, '', 'PX', 1000)
end
return ours == #KEYS and ARGV[4] + 0 or -ARGV[4]
