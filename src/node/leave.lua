local ours = 0
for i = 1, #KEYS do
  key = KEYS[i]
  queue, lease = key .. ':redlatch:queue', key .. ':redlatch:lease:'
  try('ZREM', queue, ARGV[3])
  call('DEL', lease .. ARGV[3])
  if try('GET', key) == ARGV[1] then
    local grace = tell_at(0, 'w' .. ARGV[2]) and 1000 or 0
    call('SET', key, 'redlatch:left:' .. grace .. ':' .. ARGV[1], 'PX', ARGV[2] + grace)
    ours = ours + 1
  end
end
return ours == #KEYS and ARGV[4] + 0 or -ARGV[4]
