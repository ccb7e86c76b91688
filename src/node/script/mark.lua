local mark = redis.call('GET', KEYS[1])
local new
if ARGV[1] == 'join' and not mark then
  local time = redis.call('TIME')
  new = ARGV[3] .. string.format('%.0f', time[1] * 1000000 + time[2])
elseif ARGV[1] == 'enter' and mark == ARGV[2] then
  new = ARGV[3]
end
if new then
  redis.call('SET', KEYS[1], new)
  mark = new
end
return {ARGV[4] + 0, mark and string.sub(mark, 1, 256)}
