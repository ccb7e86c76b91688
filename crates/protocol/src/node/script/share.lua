-- Takes a share of a lock, as a reader or with a permit: `KEYS[1]` the key, `KEYS[2]` its counter's
-- key if `ARGV[7]` is not 0, `ARGV[1]` our value, `ARGV[2]` its ttl in milliseconds, `ARGV[3]` how
-- many permits there are or 0 for a reader, `ARGV[4]` the permit that is looked at first (in a
-- waiter's turn: the one that it takes or none, or nothing for the one that the node has for the
-- waiter), `ARGV[5]` a waiter or nothing, `ARGV[6]` the least value of the counter, `ARGV[7]` its
-- least ttl, `ARGV[8]` the number.
--
-- The node grants it if the key does not exist or is shared, and nobody waits; in the turn of a
-- waiter, if the key is reserved for it, or if all before it in the queue can have a share beside
-- it. The waiter leaves the queue; its number is kept for a while, so that a later one gets a larger
-- one. The first waiters that can have a share now are notified. A permit raises the counter, as
-- `claim.lua` does. A reader only reads it.
--
-- Most readers' tries without a counter are granted by `share_reader.lua`, before the functions of
-- `sharing.lua` are made: if there is no queue, and the key does not exist or is shared by readers
-- of whom none has expired.
--
-- Answers a list of four: the number, 1, the counter, and the permit or -1.
--
-- Late, or once more, as `Acquire`, `Turn` of a share: As of an exclusive lock: it takes a share
-- that no client holds, until its ttl has passed. A node never gives one beside a lock, nor a
-- permit that another holder has. In a waiter's turn, it takes the waiter out of the node's queue,
-- until it renews its entry.

local now, held = time(), call('GET', key)
local permits, waiter, ends = tonumber(ARGV[3]), ARGV[5], now + ARGV[2]
if held and held ~= shared and (waiter == '' or string.sub(held, 1, 38) ~= reserved .. waiter) then
  return -ARGV[8]
end
local is_free, found = held ~= shared, false
if is_free then
  call('DEL', holders, permits_in_use, calls)
else
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  found = find_slot(ARGV[1], permits)
end
local function free_slot(from, to)
  local before = call('ZCOUNT', permits_in_use, '-inf', '(' .. from)
  local low, high = 0, call('ZCOUNT', permits_in_use, from, '(' .. to)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local rank = before + middle
    if call('ZRANGE', permits_in_use, rank, rank, 'WITHSCORES')[2] + 0 == from + middle then
      low = middle + 1
    else
      high = middle
    end
  end
  return from + low < to and from + low
end
local function free_permit(place)
  local first, slot = tonumber(ARGV[4]), -1
  if first and waiter ~= '' then
    return (is_free or free_slot(first, first + 1)) and first
  elseif first then
    first = first % permits
    return is_free and first or free_slot(first, permits) or free_slot(0, first)
  end
  for _ = 1, place do
    slot = slot and free_slot(slot + 1, permits)
  end
  return slot
end
local number = waiter ~= '' and try('ZSCORE', queue, waiter)
number = type(number) == 'string' and tonumber(number)
local place = 1
if found then
  ends = math.max(ends, tonumber(call('ZSCORE', holders, found .. ':' .. ARGV[1])))
elseif number then
  place = called(32)[waiter]
else
  for _, name in ipairs(try('ZRANGE', queue, 0, 31)) do
    local value = call('GET', lease .. name)
    if not value then
      call('ZREM', queue, name)
    elseif value ~= '' then
      return -ARGV[8]
    end
  end
end
local readers = not is_free and are_readers()
local slot = found
if not found and place and (is_free or readers == nil or readers == (permits == 0)) then
  slot = permits == 0 and '' or free_permit(place)
end
if not slot then
  return -ARGV[8]
end
local fence = 0
if KEYS[2] and ARGV[7] ~= '0' then
  local counter, problem = read_counter(KEYS[2], 2^52 + 2^40)
  if problem then
    return problem
  end
  fence = math.max(tonumber(ARGV[6]), counter and counter + (permits > 0 and 1 or 0) or 0)
  write_counter(KEYS[2], string.format('%.0f', fence), ARGV[7])
end
hold(slot, ARGV[1], ends, now)
if waiter ~= '' then
  if number and number > floor() then
    call('SET', key .. ':redlatch:floor', number, 'PX', 2000)
  end
  leave(waiter)
  call('ZREM', calls, waiter)
  called(8, now)
end
return {ARGV[8] + 0, 1, fence, tonumber(slot) or -1}
