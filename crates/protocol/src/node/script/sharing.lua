-- The beginning of the scripts that concern shares, behind `waiting.lua`.

local holders, calls = key .. ':redlatch:holders', key .. ':redlatch:called'
local permits_in_use = key .. ':redlatch:permits'
local reserved, shared = 'redlatch:reserved:', 'redlatch:shared'

-- Milliseconds since 1970.
local function time()
  local clock = call('TIME')
  return clock[1] * 1000 + math.floor(clock[2] / 1000)
end

-- Are the holders readers, and not of permits? Nothing if nobody has a share.
local function are_readers()
  local first = call('ZRANGE', holders, 0, 0)[1]
  return first and string.sub(first, 1, 1) == ':'
end

-- Makes the set of permits in use anew where it has not as many members as the set of holders.
local function index_permits()
  if call('ZCARD', permits_in_use) ~= call('ZCARD', holders) and not are_readers() then
    call('DEL', permits_in_use)
    for _, holder in ipairs(call('ZRANGE', holders, 0, -1)) do
      local slot, value = string.match(holder, '^(%d+):(.*)$')
      if slot then
        call('ZADD', permits_in_use, slot, value)
      end
    end
    call('PEXPIRE', permits_in_use, call('PTTL', holders))
  end
end

-- The keys end with the last share.
local function set_expiry(now)
  local last = call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
  local left = math.floor(math.min(last - now, 2^42))
  call('PEXPIRE', holders, left)
  call('PEXPIRE', permits_in_use, left)
  call('SET', key, shared, 'PX', left)
end

-- The first waiters, at most `most`, that can have a share beside the holders, with their places.
-- With `now`, those that were not called yet are notified, and the one after them is told when to
-- ask.
local function called(most, now, claim)
  local names, readers = {}, are_readers()
  if not readers then
    index_permits()
  end
  for _, name in ipairs(try('ZRANGE', queue, 0, 31)) do
    local value = call('GET', lease .. name)
    local permits = tonumber(string.match(value or '', '^%d+s(%d+) ')) or -1
    if not value then
      call('ZREM', queue, name)
    elseif value ~= '' then
      if readers == nil then
        readers = permits == 0
      end
      if #names == most or readers ~= (permits == 0) or not readers
        and #names >= permits - call('ZCOUNT', permits_in_use, '-inf', '(' .. permits) then
        if claim then
          tell(name, 'w' .. claim)
        end
        break
      end
      local is_called = not now or call('ZSCORE', calls, name)
      local time = not is_called and tell(name, 'r')
      if time then
        claim = time
        call('ZADD', calls, now + time, name)
        call('PEXPIRE', calls, time + 1000)
      end
      if time or is_called then
        names[#names + 1] = name
        names[name] = #names
      end
    end
  end
  for _, name in ipairs(now and call('ZRANGE', calls, 0, -1) or {}) do
    if not names[name] then
      call('ZREM', calls, name)
    end
  end
  return names
end

-- The rule of the queue, that what is free is for the first: if nobody has a share, that is the
-- lock. Returns the waiters that are called.
local function settle(held, now, claim)
  if held == shared and are_readers() ~= nil then
    set_expiry(now)
    return called(8, now, claim)
  end
  call('DEL', permits_in_use)
  return {[reserve() or ''] = 1}
end
