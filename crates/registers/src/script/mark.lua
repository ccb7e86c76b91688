-- Answers the number and the mark `KEYS[1]` as it is afterwards: `ARGV[1]` the step, `ARGV[2]` the
-- mark that was seen (empty: none), `ARGV[3]` the new one, `ARGV[5]` the number. A node whose mark
-- is the one that was seen gets, to `enter`, `ARGV[3]`; to `join`, `ARGV[3]` with its time in
-- microseconds and `ARGV[4]`, the run of its server. Any other step changes nothing.
--
-- Late, or once more: Replaces only the mark that was seen, which has the epoch and the run of the
-- server, or a number that the node has drawn.

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
