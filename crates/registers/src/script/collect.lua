-- Removes the keys of a register and raises the floor to its promise, in one step: `ARGV[2]` the
-- ballot. Does nothing unless the register was deleted with this ballot; if none is given, unless
-- nothing was ever accepted.
--
-- A deletion is collected when all nodes have accepted it.
--
-- Late, or once more: Removes the keys of one deletion only: a register that was created since has
-- another ballot.

if accepted == ARGV[2] or not accepted and promise and ARGV[2] == '' then
  forget()
end
return {number}
