local mark = redis.call('GET', KEYS[1])
local new
if (mark or '') == ARGV[2] then
  if ARGV[1] == 'join' then
    local time = redis.call('TIME')
    new = ARGV[3] .. string.format('%.0f', time[1] * 1000000 + time[2]) .. ARGV[4]
  elseif ARGV[1] == 'enter' and mark then
    new = ARGV[3]
  end
end
if new then
  redis.call('SET', KEYS[1], new)
  mark = new
end
return {ARGV[5] + 0, mark and string.sub(mark, 1, 8192)}
