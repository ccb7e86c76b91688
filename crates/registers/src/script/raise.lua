-- Raises a byte of what was accepted, in place, and answers as `read_register.lua`: `ARGV[2]` how
-- many bytes follow it, `ARGV[3]` what it is at least from then on. When the value then ends with
-- `ARGV[4]`, its keys are removed. Refuses as `prepare.lua` if there is no value, or if any ballot
-- was promised since it was accepted: who has prepared that one goes on from what it saw.
--
-- Late, or once more: A byte that is as high stays. A value that was accepted since has the byte at
-- the same place, and where the keys were removed there is none.

local place = accepted and #accepted - ARGV[2] or 0
local follows = accepted
  and string.format('%016.0f', number_of(accepted) + 1) .. string.sub(accepted, 17, 36)
if place <= 36 or promise ~= follows then
  return {-number, promise and number_of(promise) or floor(), accepted, floor()}
end
if string.byte(accepted, place) < ARGV[3] + 0 then
  accepted = string.sub(accepted, 1, place - 1)
    .. string.char(ARGV[3]) .. string.sub(accepted, place + 1)
  if string.sub(accepted, -#ARGV[4]) == ARGV[4] then
    forget()
  else
    put(KEYS[1], accepted, true)
  end
end
return {number, accepted}
