local holders, calls = key .. ':redlatch:holders', key .. ':redlatch:called'
local permits_in_use = key .. ':redlatch:permits'
local reserved, shared = 'redlatch:reserved:', 'redlatch:shared'

local function time()
  local clock = redis.call('TIME')
  return clock[1] * 1000 + math.floor(clock[2] / 1000)
end

local function floor()
  local value = redis.pcall('GET', key .. ':redlatch:floor')
  local number = type(value) == 'string' and tonumber(string.match(value, '^%d+$')) or 0
  return number < 2^52 and number or 0
end

local function are_readers()
  local first = redis.call('ZRANGE', holders, 0, 0)[1]
  return first and string.sub(first, 1, 1) == ':'
end

local is_indexed = false
local function index_permits()
  if is_indexed then
    return
  end
  is_indexed = true
  local count = redis.call('ZCARD', holders)
  if redis.call('ZCARD', permits_in_use) ~= count and not are_readers() then
    redis.call('DEL', permits_in_use)
    for _, holder in ipairs(redis.call('ZRANGE', holders, 0, -1)) do
      local slot, value = string.match(holder, '^(%d+):(.*)$')
      if slot then
        redis.call('ZADD', permits_in_use, slot, value)
      end
    end
    redis.call('PEXPIRE', permits_in_use, redis.call('PTTL', holders))
  end
end

local function free_slot(from, to)
  index_permits()
  local before = redis.call('ZCOUNT', permits_in_use, '-inf', '(' .. from)
  local low, high = 0, redis.call('ZCOUNT', permits_in_use, from, '(' .. to)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local rank = before + middle
    if redis.call('ZRANGE', permits_in_use, rank, rank, 'WITHSCORES')[2] + 0 == from + middle then
      low = middle + 1
    else
      high = middle
    end
  end
  return from + low < to and from + low
end

local function find_holder(value, permits)
  local slot = ''
  if permits > 0 then
    index_permits()
    slot = redis.call('ZSCORE', permits_in_use, value)
  end
  local holder = slot and slot .. ':' .. value
  return holder and redis.call('ZSCORE', holders, holder) and holder
end

local function left_until(score, now)
  return math.floor(math.min(tonumber(score) - now, 2^42))
end

local function set_expiry(now)
  local left = left_until(redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2], now)
  redis.call('PEXPIRE', holders, left)
  redis.call('PEXPIRE', permits_in_use, left)
  redis.call('SET', key, shared, 'PX', left)
end

local function called(most)
  local names, slots, readers, slot = {}, {}, are_readers(), -1
  for _, name in ipairs(redis.pcall('ZRANGE', queue, 0, 31)) do
    local value = redis.call('GET', lease .. name)
    local permits = tonumber(string.match(value or '', '^%d+s(%d+) '))
    if not value then
      redis.call('ZREM', queue, name)
    elseif value ~= '' then
      if readers == nil then
        readers = permits == 0
      end
      if not permits or (permits == 0) ~= readers or #names == most then
        return names, slots, name
      end
      slot = readers and '' or free_slot(slot + 1, permits)
      if not slot then
        return names, slots, name
      end
      names[#names + 1], slots[name] = name, slot
    end
  end
  return names, slots
end

local function call_waiters(now)
  local names, slots, following, claim, is_heard
  repeat
    is_heard = true
    names, slots, following = called(8)
    for _, name in ipairs(names) do
      if not redis.call('ZSCORE', calls, name) then
        local time = tell(name, 'r')
        is_heard, claim = is_heard and time, time or claim
        if time then
          redis.call('ZADD', calls, now + time, name)
          redis.call('PEXPIRE', calls, time + 1000)
        end
      end
    end
  until is_heard
  for _, name in ipairs(redis.call('ZRANGE', calls, 0, -1)) do
    if not slots[name] then
      redis.call('ZREM', calls, name)
    end
  end
  if claim and following then
    tell(following, 'w' .. claim)
  end
  return slots
end

local function kept(held)
  local left, grace = redis.call('PTTL', key), nil
  if type(held) == 'string' and string.sub(held, 1, 18) == reserved then
    grace = tonumber(string.sub(held, 39)) or 0
    return string.sub(held, 19, 38), left - grace, grace
  end
  grace = type(held) == 'string' and tonumber(string.match(held, '^redlatch:left:(%d+):'))
  return nil, left - (grace or 0), grace
end

local function pass_over(late, caller)
  if late and (late ~= caller or redis.call('ZCARD', queue) > 1) then
    redis.call('ZREM', queue, late)
    redis.call('DEL', lease .. late)
    for _, waiter in ipairs(redis.call('ZRANGE', queue, 0, 99)) do
      local kept = string.match(redis.call('GET', lease .. waiter) or '', '^%w+ %d+ (%d+)')
      if kept and redis.call('PTTL', lease .. waiter) > tonumber(kept) then
        redis.call('PEXPIRE', lease .. waiter, kept)
        tell(waiter, 'w0')
      end
    end
    return late == caller
  end
  return false
end

local function pass_over_called(now, caller)
  local is_late, called = false, redis.call('ZRANGE', calls, 0, -1, 'WITHSCORES')
  for i = 1, #called, 2 do
    if tonumber(called[i + 1]) < now then
      redis.call('ZREM', calls, called[i])
      is_late = pass_over(called[i], caller) or is_late
    end
  end
  return is_late
end

local function settle(held, now)
  if held == shared and redis.call('ZCARD', holders) > 0 then
    set_expiry(now)
    call_waiters(now)
  else
    redis.call('DEL', permits_in_use)
    reserve()
  end
end
