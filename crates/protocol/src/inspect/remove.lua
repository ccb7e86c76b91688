local held, seen = call('GET', key), false
local left_by = string.match(held or '', '^redlatch:left:%d+:(.*)$')
local now = held == shared and time()
if now then
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
end
for i = 1, #ARGV - 1 do
  if held == shared then
    seen = call('ZREM', holders, ARGV[i]) == 1 or seen
      or ARGV[i] == held and call('ZCARD', holders) == 0
  else
    seen = seen or held == ARGV[i] or left_by == ARGV[i]
  end
end
if seen then
  settle(held, now)
end
return seen and ARGV[#ARGV] + 0 or -ARGV[#ARGV]
