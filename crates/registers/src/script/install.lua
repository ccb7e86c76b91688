-- Replaces the state of a register, and raises the floor: `ARGV[1]` how the mark of the node begins
-- that is being made a member, `ARGV[2]` the ballot of what counts as accepted, `ARGV[3]` its
-- value, `ARGV[4]` the floor. Without a ballot, the register has no keys afterwards.
--
-- Late, or once more: Only while the node has the number that it drew for this repair: one that has
-- become a member, or has forgotten it, is not touched.

if ARGV[2] == '' then
  redis.call('DEL', KEYS[1], KEYS[2])
else
  redis.call('SET', KEYS[2], ARGV[2])
  redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3])
end
if tonumber(ARGV[4]) > (floor() or -1) then
  redis.call('SET', KEYS[4], ARGV[4])
end
return {number}
