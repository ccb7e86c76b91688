local value, number = redis.call('GET', KEYS[1]), ARGV[#ARGV] + 0
for i = 1, #ARGV - 1 do
  if value == ARGV[i] then
    redis.call('DEL', KEYS[1])
    return number
  end
end
return -number
