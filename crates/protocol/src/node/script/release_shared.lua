-- Gives a share of a lock back, whichever permit it is: `KEYS[1]` the key, `ARGV[1]` our value,
-- `ARGV[2]` how many permits there are or 0 for a reader, `ARGV[3]` the waiter by which we took it,
-- which leaves the queue, or nothing, `ARGV[4]` for how many milliseconds it is kept, or nothing to
-- remove it, `ARGV[5]` the number. After the last share, the lock is reserved for the first waiter;
-- while there are others, the first waiters that can have a share are notified, and if the first
-- has left, the one after them is told to ask. Answers yes if we had a share.
--
-- Late, or once more, as `Release`, `Undo` of a share: Compares the token, which was given up when
-- this was sent, and takes the waiter out of the queue, as `give.lua` does. (A call that was
-- granted a permit too late goes on, and stays out of this node's queue until it renews its entry.)

local value, waiter, linger = ARGV[1], ARGV[3], ARGV[4]
local held, now, found, was_first = try('GET', key), time(), false, false
if waiter ~= '' then
  was_first = try('ZRANK', queue, waiter) == 0
  leave(waiter)
  try('ZREM', calls, waiter)
  if string.sub(tostring(held), 1, 38) == reserved .. waiter then
    held = false
  end
end
if held == shared then
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local slot = ARGV[2] == '0' and '' or call('ZSCORE', permits_in_use, value)
  local member = slot and slot .. ':' .. value
  found = member and call('ZREM', holders, member) == 1
  if found and linger ~= '' then
    call('ZADD', holders, now + linger, member)
    set_expiry(now)
    tell_at(0, 'w' .. linger)
    return ARGV[5] + 0
  elseif found then
    call('ZREM', permits_in_use, value)
  end
end
if not held or held == shared then
  settle(held, now, was_first and 0)
end
return found and ARGV[5] + 0 or -ARGV[5]
