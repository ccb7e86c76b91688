-- Deletes the lock's key if it still holds our token, and reserves the lock for the first waiter:
-- `KEYS[1]` the key, `ARGV[1]` the token, `ARGV[2]` the number.
--
-- What only a lock with waiters needs comes last: Lua makes no closures for the others. `PTTL` tells
-- whether there is a queue: of the commands that every user may run, it costs the least.
--
-- Late, or once more, as `Release`, `Undo`, also when pending: Compares the token, which was given
-- up when this was sent. Where it removes the key, it reserves the lock for the first waiter, as it
-- would have in time.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return -ARGV[2]
end
if redis.pcall('PTTL', KEYS[1] .. ':redlatch:queue') == -2 then
  redis.call('DEL', KEYS[1])
  return ARGV[2] + 0
end
