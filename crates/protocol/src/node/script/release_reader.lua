local holders, member = key .. ':redlatch:holders', ':' .. ARGV[1]
local ends = call('GET', key) == 'redlatch:shared' and call('ZSCORE', holders, member)
if not ends then
  return -ARGV[2]
end
call('ZREM', holders, member)
local last = call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
if last and tonumber(last) < tonumber(ends) then
  try('PEXPIREAT', key, last)
  last = call('EXISTS', key) == 1 and try('PEXPIREAT', holders, last)
end
if not last then
  call('DEL', key, holders)
  reserve()
end
return ARGV[2] + 0
