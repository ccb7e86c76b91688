-- Gives back the share of a reader that did not wait, as `release_shared.lua` does with less work:
-- `KEYS[1]` the key, `ARGV[1]` our value, `ARGV[2]` the number. It removes no shares that have
-- expired: a waiter that asks (`queue.lua`) sees to that. So yes may be the answer also if our
-- share had expired: nobody had the lock since then but others with a share.
--
-- Late, or once more, as `Release`, `Undo` of a reader that did not wait: Compares the token, which
-- was given up when this was sent.

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
