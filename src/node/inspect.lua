local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if not string.find(value.err, 'WRONGTYPE') then
    return value
  end
  value = ''
end
return {ARGV[1] + 0, value and string.sub(value, 1, 1024), redis.call('PTTL', KEYS[1])}
