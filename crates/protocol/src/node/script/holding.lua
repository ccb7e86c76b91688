-- Shares: finds, adds and removes them. Behind `sharing.lua`.

-- The number of the last waiter that has left with a share: a later one gets a larger number.
local function floor()
  local value = try('GET', key .. ':redlatch:floor')
  local number = type(value) == 'string' and tonumber(string.match(value, '^%d+$')) or 0
  return number < 2^52 and number or 0
end

-- The permit that this value holds, the empty text for a reader that it is of, or nothing.
local function find_slot(value, permits)
  local slot = ''
  if permits > 0 then
    index_permits()
    slot = call('ZSCORE', permits_in_use, value)
  end
  return slot and call('ZSCORE', holders, slot .. ':' .. value) and slot
end

-- Adds a share, or prolongs it.
local function hold(slot, value, ends, now)
  call('ZADD', holders, ends, slot .. ':' .. value)
  if slot ~= '' then
    call('ZADD', permits_in_use, slot, value)
  end
  set_expiry(now)
end

-- Removes a share.
local function drop(slot, value)
  call('ZREM', holders, slot .. ':' .. value)
  call('ZREM', permits_in_use, value)
end

