local ours = 0
for i = 1, #KEYS do
  if redis.pcall('GET', KEYS[i]) == ARGV[1] then
    ours = ours + redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
end
return ours == #KEYS and ARGV[3] + 0 or -ARGV[3]
