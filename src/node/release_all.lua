local ours = 0
for i = 1, #KEYS do
  key = KEYS[i]
  queue, lease = key .. ':redlatch:queue', key .. ':redlatch:lease:'
  if try('GET', key) == ARGV[1] then
    reserve()
    ours = ours + 1
  end
end
return ours == #KEYS and ARGV[2] + 0 or -ARGV[2]
