-- Raises the last bytes of what was accepted, in place, to at least those of `ARGV[2]`, and answers
-- as `read_register.lua`. When each of them is at 3, the keys are removed. Refuses as `prepare.lua`
-- if there is no value, or if any ballot was promised since it was accepted: who has prepared that
-- one goes on from what it saw.
--
-- Late, or once more: Bytes that are as high stay. A value that was accepted since has them at the
-- same place, and where the keys were removed there is none.

local follows = accepted
  and string.format('%016.0f', number_of(accepted) + 1) .. string.sub(accepted, 17, 36)
local first = accepted and #accepted - #ARGV[2] or 0
if first < 36 or promise ~= follows then
  return {-number, promise and number_of(promise) or floor(), accepted, floor()}
end
local raised, least = string.sub(accepted, 1, first), 3
for place = 1, #ARGV[2] do
  local byte = math.max(string.byte(accepted, first + place), string.byte(ARGV[2], place))
  raised, least = raised .. string.char(byte), math.min(least, byte)
end
if least == 3 then
  forget()
elseif raised ~= accepted then
  put(KEYS[1], raised, true)
end
return {number, raised}
