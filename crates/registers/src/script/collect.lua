-- Removes the keys of a register and raises the floor to its promise, in one step: `ARGV[2]` the
-- ballot. Does nothing unless the register was deleted with this ballot; if none is given, unless
-- nothing was ever accepted.
--
-- A deletion is collected when all nodes have accepted it. The floor takes the place of what was
-- promised: a key that is absent refuses all that was ever prepared or sent before.
--
-- Late, or once more: Removes the keys of one deletion only: a register that was created since has
-- another ballot.

if accepted == ARGV[2] or not accepted and promise and ARGV[2] == '' then
  local least = number_of(promise)
  if least > floor() then
    redis.call('SET', KEYS[4], string.format('%.0f', least))
  end
  redis.call('DEL', KEYS[1], KEYS[2])
end
return {number}
