-- Removes the keys of a register, behind `member.lua`.

-- The floor takes the place of what was promised: a key that is absent refuses all that was ever
-- prepared or sent before.
local function forget()
  local least = number_of(promise)
  if least > floor() then
    redis.call('SET', KEYS[4], string.format('%.0f', least))
  end
  redis.call('DEL', KEYS[1], KEYS[2])
end
