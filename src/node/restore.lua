local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, 18) ~= 'redlatch:reserved:' then
  return -ARGV[3]
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[3] + 0
