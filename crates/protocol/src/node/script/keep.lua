-- Extends a lock, or sets it again on a node that lost it: `KEYS` the lock's keys, `ARGV[1]` our
-- value, `ARGV[2]` the ttl in milliseconds, `ARGV[3]` nothing to extend it, `restore` to set it
-- again, `ARGV[4]` the number.
--
-- All keys must hold our value; if it is set again, those that do not exist or are reserved for a
-- waiter are set. It never shortens a key's ttl, so an earlier and shorter extension may arrive at
-- any time. A key without a ttl gets none.
--
-- Late, or once more, as `Extend`: Compares the token, and only extends: an earlier, longer
-- extension stays as it is. A key that remains of a lost lock, or of a lock that stays taken after
-- its release (`give.lua`), may stay for one more ttl.
--
-- Late, or once more, as `Restore`, after an extension and after a grant: As `Acquire`, with the
-- rest of the ttl of when it was sent, but it also takes the place of a reservation, whose waiter
-- then waits until the key's ttl has passed. The ttl of an existing key is never shortened.

local is_kept = {}
for i = 1, #KEYS do
  local held = redis.call('GET', KEYS[i])
  is_kept[i] = held == ARGV[1]
  if not is_kept[i]
    and (ARGV[3] == '' or held and string.sub(held, 1, 18) ~= 'redlatch:reserved:') then
    return -ARGV[4]
  end
end
for i = 1, #KEYS do
  local left = is_kept[i] and redis.call('PTTL', KEYS[i]) or -2
  if left == -2 then
    redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
  elseif left ~= -1 and left < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
end
return ARGV[4] + 0
