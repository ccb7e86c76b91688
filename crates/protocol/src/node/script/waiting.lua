-- The beginning of every script that frees a lock with one key: `KEYS[1]`.

local call, try, key = redis.call, redis.pcall, KEYS[1]
local queue, lease = key .. ':redlatch:queue', key .. ':redlatch:lease:'

-- Takes a waiter out of the queue.
local function leave(waiter)
  try('ZREM', queue, waiter)
  try('DEL', lease .. waiter)
end

-- Tells a waiter `word`, and returns for how many milliseconds it may take to claim the lock. An
-- entry without that time is of a waiter that has claimed; it and a waiter that nobody hears are
-- removed.
local function tell(waiter, word)
  local entry = try('GET', lease .. waiter) or ''
  if type(entry) ~= 'string' then
    return
  end
  local claim, channel = string.match(entry, '^%w+ ([1-9]%d?%d?%d?%d?) %d+ (%S*) ')
  local publish = channel and channel:find('{', 1, true) and 'SPUBLISH' or 'PUBLISH'
  if claim and (channel == '' or try(publish, channel, waiter .. word) ~= 0) then
    return claim
  end
  leave(waiter)
end

-- Tells the waiter at a place of the queue, or else the next that is heard. Returns it and its
-- time.
local function tell_at(place, word)
  local waiter, claim, last
  repeat
    last, waiter = waiter, try('ZRANGE', queue, place, place)[1]
    claim = waiter and waiter ~= last and tell(waiter, word)
  until claim or not waiter or waiter == last
  return claim and waiter, claim
end

-- Sets the lock's key to a reservation for the first waiter, and tells the next when to ask, which
-- has a second more to do so. If nobody waits, the key is deleted. Returns the first waiter.
local function reserve()
  local head, claim = tell_at(0, 'r')
  local grace = head and tell_at(1, 'w' .. claim) and 1000 or 0
  local value = head and 'redlatch:reserved:' .. head .. grace
  if not head or try('SET', key, value, 'PX', claim + grace).err then
    call('DEL', key)
  end
  return head
end
