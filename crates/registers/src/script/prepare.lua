-- Promises a ballot, `ARGV[2]`. Refuses if a higher ballot was promised, or one of another owner
-- with this number; without a promise, if the floor is not below it. Answers the number, what was
-- accepted, and the floor.
--
-- Late, or once more: Below the promise, or the floor: refused. Otherwise a promise for which
-- nobody asks any more, and which the next ballot goes beyond.

local refusal = outbid(ARGV[2])
if refusal then
  return refusal
end
put(KEYS[2], ARGV[2], promise)
return {number, accepted, floor()}
