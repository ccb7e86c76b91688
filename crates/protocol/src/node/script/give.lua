-- Gives a lock up: `KEYS` the lock's keys and then their queues, `ARGV[1]` our value, `ARGV[2]` the
-- waiter that leaves the queue, or nothing, `ARGV[3]` for how many milliseconds the lock stays taken, or nothing,
-- `ARGV[4]` the number. Each key that holds our value is deleted, and the lock is reserved for the
-- first waiter; and so is a lock that was reserved for the waiter that leaves. If that one was the
-- first and the lock is another client's, the next is told to ask.
--
-- A lock that stays taken is not deleted: its key says from now on that the lock is left, and until
-- when. If somebody waits, the key stays for a second longer, in which only the first waiter gets
-- the lock: it is told when to ask.
--
-- Answers yes if all keys held our value. If a key cannot be read, the others are given up all the
-- same, and the answer is the server's error.
--
-- Late, or once more, as `Release`, `Undo` of several keys: As by `release.lua`.
--
-- Late, or once more, as `Release`, `Undo` of a waiter that leaves: As by `release.lua`. It also
-- takes the waiter out of the queue: its name is used for one call only, which has ended or has the
-- lock.
--
-- Late, or once more, as `Release`, `Undo` of a lock that stays taken for a while (`hold_at_least`,
-- `leave`): Compares the token, which was given up when this was sent. It removes nothing: the key
-- ends at most that while after this was carried out, or a second later if somebody waits; a second
-- one finds no such token. If it never arrives, the key ends with its ttl.

local value, waiter, linger, ours, failed = ARGV[1], ARGV[2], ARGV[3], 0, nil
local half = #KEYS / 2
local locks = KEYS[half + 1] == KEYS[1] .. ':redlatch:queue' and half or #KEYS
for i = 1, locks do
  local name = KEYS[i]
  key, queue, lease = name, name .. ':redlatch:queue', name .. ':redlatch:lease:'
  local held, was_first, is_kept = try('GET', key), false, false
  if waiter ~= '' then
    was_first = try('ZRANK', queue, waiter) == 0
    leave(waiter)
    is_kept = string.sub(tostring(held), 1, 38) == 'redlatch:reserved:' .. waiter
  end
  if held == value and linger ~= '' then
    local grace = tell_at(0, 'w' .. linger) and 1000 or 0
    call('SET', key, 'redlatch:left:' .. grace .. ':' .. value, 'PX', linger + grace)
  elseif held == value or is_kept and linger == '' then
    reserve()
  elseif was_first and held and linger == '' then
    tell_at(0, 'w0')
  end
  ours = held == value and ours + 1 or ours
  failed = type(held) == 'table' and held or failed
end
return failed or ours == locks and ARGV[4] + 0 or -ARGV[4]
