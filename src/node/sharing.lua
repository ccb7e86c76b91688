local key = KEYS[1]
local queue, holders = key .. ':redlatch:queue', key .. ':redlatch:holders'
local lease, bell = key .. ':redlatch:lease:', key .. ':redlatch:bell:'
local reserved, shared = 'redlatch:reserved:', 'redlatch:shared'

local function time()
  local clock = redis.call('TIME')
  return clock[1] * 1000 + math.floor(clock[2] / 1000)
end

local function slots_in_use()
  local used = {}
  for _, holder in ipairs(redis.call('ZRANGE', holders, 0, -1)) do
    used[string.match(holder, '^%d*')] = true
  end
  return used
end

local function free_slot(used, permits, first)
  for i = first, first + permits - 1 do
    local slot = string.format('%.0f', i % permits)
    if not used[slot] then
      return slot
    end
  end
end

local function find_holder(value, permits)
  if permits == 0 then
    return redis.call('ZSCORE', holders, ':' .. value) and ':' .. value
  end
  for _, holder in ipairs(redis.call('ZRANGE', holders, 0, -1)) do
    if string.match(holder, '^%d*:(.*)$') == value then
      return holder
    end
  end
end

local function set_expiry(now)
  local left = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2] - now
  redis.call('SET', key, shared, 'PX', left)
  redis.call('PEXPIRE', holders, left)
end

local function called(most)
  local names, slots, used, from = {}, {}, nil, 0
  for _, name in ipairs(redis.call('ZRANGE', queue, 0, 31)) do
    local value = redis.call('GET', lease .. name)
    local permits = tonumber(string.match(value or '', '^%d+s(%d+) '))
    if not value then
      redis.call('ZREM', queue, name)
    elseif value ~= '' then
      used = used or permits and permits > 0 and slots_in_use()
      local slot = permits == 0 and '' or permits and free_slot(used, permits, from)
      if not slot or #names == most then
        break
      end
      names[#names + 1], slots[name] = name, slot
      if slot ~= '' then
        used[slot], from = true, slot + 1
      end
    end
  end
  return names, slots
end

local function ring(ms)
  for _, name in ipairs(called(8)) do
    redis.call('SET', bell .. name, '', 'PX', ms)
    if redis.call('PTTL', lease .. name) > tonumber(ms) then
      redis.call('PEXPIRE', lease .. name, ms)
    end
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
