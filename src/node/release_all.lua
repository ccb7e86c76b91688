local ours = 0
for i = 1, #KEYS do
  if redis.pcall('GET', KEYS[i]) == ARGV[1] then
    ours = ours + redis.call('DEL', KEYS[i])
  end
end
return ours == #KEYS and ARGV[2] + 0 or -ARGV[2]
