-- Enters a waiter into the queue of a lock, or renews its entry: `KEYS` the lock's keys and then
-- five others for each of them, the queues first, `ARGV[1]` the waiter's name, `ARGV[2]` its number
-- or 0 for one more than the last in the queue, `ARGV[3]` the value of the failed attempt, which is
-- withdrawn, `ARGV[4]` its entry, `ARGV[5]` for how many milliseconds the entry is kept, `ARGV[6]`
-- the number. A waiter that has a place keeps its number if it asks for 0. A queue with a number
-- that no counting reaches was written by another program, and is emptied: the waiters enter it
-- again.
--
-- The script removes shares that have expired: the key ends with the last one that has not. It
-- removes waiters whose entry has expired from the front of the queue. A waiter that has not
-- claimed its reservation in time is removed from the queue if another waits. If the one that asks
-- is that waiter, it stays out until it asks again. Then, if the key holds no lock, it is reserved
-- for the first waiter (`waiting.lua`).
--
-- A lock of several keys has an entry in the queue of each, with one number: the largest that any
-- of the queues gives. If some of the keys are reserved for the waiter and others are not, these
-- reservations are renewed, for as long as an entry in front is kept. If all are, they last as long
-- as a claim may take, and are not renewed.
--
-- Answers a list: the number, the waiter's number, its place (0 for the first); the sum of 1 if the
-- lock is reserved for it, 2 if it had a number but was not in the queue, or has missed its
-- reservation, and, if some of its keys are reserved for it, but not all, 4 times the number, from
-- 1, of the key for which it waits longest; for how many milliseconds the lock or the reservation
-- of another waiter lasts, and how many waiters there are; if the waiter is called for a permit, a
-- text with a `1` for each that is free and a `0` for each that is not, and nothing otherwise. Of
-- several keys, the place is the one with the most waiters before it, and the time that of the key
-- for which it waits longest.
--
-- Late, or once more, as `Queue`: Enters the waiter once more: it brings back an entry, or a place
-- in the queue, that only its lease ends. Until then the node may reserve the lock for a waiter
-- that has left: if that connection is gone, the notification finds nobody, and the entry is
-- removed; if not, for one reservation. If the reservation of another waiter is over, that one is
-- removed from the queue, as it would have been in time. It takes no lock, and withdraws only a
-- token that was given up when this was sent.

-- For whom the key is reserved, for how long, and how much longer the first waiter alone may claim.
-- Of a lock that stays taken after its release, the last two.
local function kept(held)
  local left, grace = call('PTTL', key), nil
  if type(held) == 'string' and string.sub(held, 1, 18) == reserved then
    grace = tonumber(string.sub(held, 39)) or 0
    return string.sub(held, 19, 38), left - grace, grace
  end
  grace = type(held) == 'string' and tonumber(string.match(held, '^redlatch:left:(%d+):'))
  return nil, left - (grace or 0), grace
end

-- A waiter that has missed its reservation leaves the queue, if another waits. The entries of those
-- behind it, which may be in front now, end sooner. Returns whether it is the one that asks.
local function pass_over(late, caller)
  if late and (late ~= caller or call('ZCARD', queue) > 1) then
    leave(late)
    for _, waiter in ipairs(call('ZRANGE', queue, 0, 99)) do
      local kept = string.match(call('GET', lease .. waiter) or '', '^%w+ %d+ (%d+)')
      if kept and call('PTTL', lease .. waiter) > tonumber(kept) then
        call('PEXPIRE', lease .. waiter, kept)
        tell(waiter, 'w0')
      end
    end
    return late == caller
  end
  return false
end

-- The same for waiters that were called to a share.
local function pass_over_called(now, caller)
  local is_late, called = false, call('ZRANGE', calls, 0, -1, 'WITHSCORES')
  for i = 1, #called, 2 do
    if tonumber(called[i + 1]) < now then
      call('ZREM', calls, called[i])
      is_late = pass_over(called[i], caller) or is_late
    end
  end
  return is_late
end

local waiter, number_asked = ARGV[1], ARGV[2]
local claim, lease_in_front = string.match(ARGV[4], '^%w+ (%d+) (%d+)')
local permits = tonumber(string.match(ARGV[4], '^%d+s(%d+) '))

-- The key of which the functions speak.
local function go_to(name)
  key, queue, lease = name, name .. ':redlatch:queue', name .. ':redlatch:lease:'
  holders, calls = name .. ':redlatch:holders', name .. ':redlatch:called'
  permits_in_use = name .. ':redlatch:permits'
end

-- One more than the last in the queue.
local function next_number()
  call('ZREM', queue, '')
  local last = call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
  local number = math.max(last, floor()) + 1
  if number > 4503599627370496 then
    call('DEL', queue, key .. ':redlatch:floor')
    number = 1
  end
  return number
end

-- Enters the waiter, and removes those from the front whose entries have expired.
local function enter(number)
  if number_asked ~= '0' then
    number = number_asked
  elseif not number then
    number = next_number()
  end
  call('SET', lease .. waiter, ARGV[4], 'PX', ARGV[5])
  call('ZADD', queue, number, waiter)
  if call('PTTL', queue) < tonumber(ARGV[5]) then
    call('PEXPIRE', queue, ARGV[5])
  end
  local head = call('ZRANGE', queue, 0, 0)[1]
  while call('EXISTS', lease .. head) == 0 do
    call('ZREM', queue, head)
    head = call('ZRANGE', queue, 0, 0)[1]
  end
  return number
end

-- Somebody waits now: a second is added in which only the first waiter gets the lock.
local function keep_longer(held, left, grace)
  local is_left = grace and string.sub(held, 1, 14) == 'redlatch:left:'
  if is_left and grace == 0 then
    call('SET', key, 'redlatch:left:1000' .. string.sub(held, 16), 'PX', left + 1000)
  elseif grace == 0 and call('ZCARD', queue) > 1 then
    call('SET', key, string.sub(held, 1, 38) .. 1000, 'PX', left + 1000)
  end
end

-- A text with `1` for each permit that is free.
local function free_permits(held)
  local free = {}
  for number = 1, permits do
    free[number] = '1'
  end
  local in_use = held == shared and call('ZRANGE', permits_in_use, 0, -1, 'WITHSCORES') or {}
  for i = 2, #in_use, 2 do
    free[in_use[i] + 1] = '0'
  end
  return table.concat(free, '', 1, permits)
end

-- All of it for one key.
local function visit()
  local held, now = try('GET', key), nil
  if held == ARGV[3] then
    held = false
  elseif held == shared then
    now = time()
    call('ZREMRANGEBYSCORE', holders, '-inf', now)
    local withdrawn = permits and find_slot(ARGV[3], permits)
    if withdrawn then
      drop(withdrawn, ARGV[3])
    end
    held = call('ZCARD', holders) > 0 and held
  end
  local first, left, grace = kept(held)
  local number, is_late = call('ZSCORE', queue, waiter), false
  if grace and left <= 0 then
    held, is_late = false, pass_over(first, waiter)
  elseif held == shared then
    is_late = pass_over_called(now, waiter)
  end
  local was_out = ARGV[2] ~= '0' and (is_late or not number)
  if not is_late then
    number = enter(number)
  end
  local is_mine
  if not held or held == shared or first and call('ZRANGE', queue, 0, 0)[1] ~= first then
    is_mine = settle(held, now)[waiter]
  else
    is_mine = first == waiter
    keep_longer(held, left, grace)
  end
  held = try('GET', key)
  first, left = kept(held)
  if permits and permits > 0 and held == shared then
    left = call('ZRANGE', holders, 0, 0, 'WITHSCORES')[2] - (now or time())
    left = math.floor(math.min(left, 2^42))
  end
  local place = not is_late and call('ZRANK', queue, waiter)
  local waiting = call('ZCARD', queue) + (place and 0 or 1)
  local free = is_mine and permits and free_permits(held) or ''
  return number or math.max(ARGV[2], 1), place or waiting - 1, is_mine, was_out, left, waiting, free
end

local locks = KEYS[#KEYS / 6 + 1] == KEYS[1] .. ':redlatch:queue' and #KEYS / 6 or #KEYS
if locks > 1 and number_asked == '0' then
  for i = 1, locks do
    go_to(KEYS[i])
    number_asked = math.max(number_asked, call('ZSCORE', queue, waiter) or next_number())
  end
end
local largest, last, most, is_out, ends, late, mine_ends, mine = 0, 0, 0, false, nil, 0, nil, {}
local number, place, is_mine, was_out, left, waiting, free
for index = 1, locks do
  local name = KEYS[index]
  go_to(name)
  number, place, is_mine, was_out, left, waiting, free = visit()
  largest, last = math.max(largest, number), math.max(last, place)
  most, is_out = math.max(most, waiting), is_out or was_out
  if is_mine then
    mine[#mine + 1], mine_ends = name, math.min(mine_ends or left, left)
  elseif not ends or ends >= 0 and (left < 0 or left > ends) then
    ends, late = left, index
  end
end
for _, name in ipairs(locks > 1 and mine or {}) do
  local grace = tonumber(string.sub(call('GET', name), 39)) or 0
  if ends then
    call('PEXPIRE', name, math.max(claim, lease_in_front) + grace)
  elseif call('PTTL', name) > claim + grace then
    call('PEXPIRE', name, claim + grace)
  end
end
local flags = (ends and 0 or 1) + (is_out and 2 or 0) + (mine[1] and 4 * late or 0)
return {ARGV[6] + 0, largest, last, flags, ends or mine_ends, most, free}
