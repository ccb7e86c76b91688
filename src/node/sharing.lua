local key = KEYS[1]
local queue, holders = key .. ':redlatch:queue', key .. ':redlatch:holders'
local lease, bell = key .. ':redlatch:lease:', key .. ':redlatch:bell:'
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

local function slots_in_use()
  local used, twice = {}, 0
  for _, holder in ipairs(redis.call('ZRANGE', holders, 0, -1)) do
    local slot = tonumber(string.match(holder, '^%d+'))
    if slot then
      slot = slot % 1024
      twice = twice + (used[slot] and 1 or 0)
      used[slot] = true
    end
  end
  return used, twice
end

local function free_slot(used, permits, first)
  for i = first, first + permits - 1 do
    if not used[i % permits] then
      return i % permits
    end
  end
end

local function find_holder(value, permits)
  if permits == 0 then
    return redis.call('ZSCORE', holders, ':' .. value) and ':' .. value
  end
  for _, holder in ipairs(are_readers() and {} or redis.call('ZRANGE', holders, 0, -1)) do
    if string.match(holder, '^%d*:(.*)$') == value then
      return holder
    end
  end
end

local function left_until(score, now)
  return math.floor(math.min(tonumber(score) - now, 2^42))
end

local function set_expiry(now)
  local left = left_until(redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2], now)
  redis.call('PEXPIRE', holders, left)
  redis.call('SET', key, shared, 'PX', left)
end

local function called(most)
  local names, slots, readers, used, twice, from = {}, {}, are_readers(), nil, 0, 0
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
      if not used and not readers then
        used, twice = slots_in_use()
      end
      used = used or {}
      while used[from] do
        from = from + 1
      end
      local last = from
      for _ = 1, twice do
        repeat
          last = last + 1
        until not used[last]
      end
      if not readers and last >= permits then
        return names, slots, name
      end
      names[#names + 1], slots[name] = name, readers and '' or from
      from = from + 1
    end
  end
  return names, slots
end

local function ring(ms)
  local names, _, following = called(8)
  for _, name in ipairs(names) do
    redis.call('SET', bell .. name, '', 'PX', ms)
    if redis.call('PTTL', lease .. name) > tonumber(ms) then
      redis.call('PEXPIRE', lease .. name, ms)
    end
  end
  if following and redis.call('PTTL', lease .. following) > tonumber(ms) then
    redis.call('SET', bell .. following, '', 'PX', ms)
  end
end

local function settle(held, now, ms)
  if held == shared and redis.call('ZCARD', holders) > 0 then
    set_expiry(now)
    return ring(ms)
  end
  redis.call('DEL', key)
  local head = redis.pcall('ZRANGE', queue, 0, 0)[1]
  if head then
    redis.call('SET', key, reserved .. head, 'PX', ms)
    redis.pcall('SET', bell .. head, '', 'PX', ms)
  end
end
