-- Takes a lock, all of its keys or none: `KEYS` the lock's keys and then, if `ARGV[6]` is not 0,
-- its counters' keys, `ARGV[1]` the number of lock keys, `ARGV[2]` the value that the keys may have, or nothing,
-- `ARGV[3]` our value, `ARGV[4]` its ttl in milliseconds, `ARGV[5]` the least value of a counter,
-- `ARGV[6]` the least ttl of the counters, `ARGV[7]` a waiter or nothing, `ARGV[8]` the number.
-- Every key must be free, or have the value that is expected:
--
-- * nothing, to acquire the lock;
-- * the predecessor's value, in a handoff. The waiter is the one by which the predecessor was
--   taken, and leaves the queue;
-- * a reservation, in the turn of the waiter that it names. The waiter must be the first in the
--   queue of each key, or have the reservation. It stays in the queue until the lock is released,
--   or its entry expires: as long as it is not known whether a majority has granted the lock, who
--   joins must get a larger number. Its entry ends with the lock's ttl at the latest, and is empty
--   then.
--
-- Answers a list of four: the number; 1 if some of the keys did not exist or were reserved, 0 if
-- all held the predecessor's value; if there are counters, their new value, one more than the
-- largest was; and 1 if another client waits for one of the keys, 0 if none does.
--
-- It never shortens a counter's ttl. A counter consists of decimal digits only, although Lua reads
-- other texts as numbers too. A counter that is not a number, or is too large to be raised, is an
-- error, and nothing is written then. The error does not quote the key, which may have more bytes
-- than a line of RESP.
--
-- Late, or once more, as `Acquire` of a lock with counters or several keys: As by `SET NX`.
--
-- Late, or once more, as `Handoff`: As `Acquire`; or it replaces the token before, which was given
-- up when this was sent. A key that this lock has already is not touched.
--
-- Late, or once more, as `Turn`: As `Acquire`; or it replaces the reservation of its own waiter. It
-- also takes the waiter out of the node's queue, until the waiter renews its entry.

local locks, held, fence = tonumber(ARGV[1]), 0, 0
local from, waiter, others, heads = ARGV[2], ARGV[7], 0, {}
local is_turn = string.sub(from, 1, 18) == 'redlatch:reserved:'
for i = 1, locks do
  local value, queue = redis.call('GET', KEYS[i]), KEYS[i] .. ':redlatch:queue'
  local head = is_turn and redis.call('ZRANGE', queue, 0, 0)[1]
  if value and (from == '' or (is_turn and string.sub(value, 1, 38) or value) ~= from)
    or not value and head and head ~= waiter then
    return -ARGV[8]
  end
  held, heads[i] = value and held + 1 or held, head
end
local last = ARGV[6] == '0' and locks or math.min(#KEYS, 2 * locks)
for i = locks + 1, last do
  local counter, problem = read_counter(KEYS[i], 2^52 + 2^40)
  if problem then
    return problem
  end
  fence = math.max(fence, tonumber(ARGV[5]), counter and counter + 1 or 0)
end
for i = 1, locks do
  redis.call('SET', KEYS[i], ARGV[3], 'PX', ARGV[4])
end
for i = locks + 1, last do
  write_counter(KEYS[i], string.format('%.0f', fence), ARGV[6])
end
for i = 1, locks do
  local queue, lease = KEYS[i] .. ':redlatch:queue', KEYS[i] .. ':redlatch:lease:' .. waiter
  if is_turn then
    local left = math.min(redis.call('PTTL', lease), tonumber(ARGV[4]))
    if left > 0 then
      redis.call('SET', lease, '', 'PX', left)
    end
  elseif waiter ~= '' then
    redis.pcall('ZREM', queue, waiter)
    redis.call('DEL', lease)
  end
  local waiting = redis.pcall('ZCARD', queue)
  waiting = type(waiting) == 'number' and waiting - (heads[i] == waiter and 1 or 0) or 0
  others = math.max(others, waiting)
end
local is_new = (is_turn or held < locks) and 1 or 0
return {ARGV[8] + 0, is_new, fence, others > 0 and 1 or 0}
