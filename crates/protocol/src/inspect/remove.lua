-- Deletes a lock's key `KEYS[1]`, whatever token it holds, if its value is one of those that were
-- read before: all of `ARGV` but the last, which is the number.
--
-- Late, or once more, as `ForcedRemoval`: Removes only a value that was seen, and reserves the lock
-- for the first waiter. A lock that was taken since has another.

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
