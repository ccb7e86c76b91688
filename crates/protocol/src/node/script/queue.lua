local function kept(held)
  local left, grace = call('PTTL', key), nil
  if type(held) == 'string' and string.sub(held, 1, 18) == reserved then
    grace = tonumber(string.sub(held, 39)) or 0
    return string.sub(held, 19, 38), left - grace, grace
  end
  grace = type(held) == 'string' and tonumber(string.match(held, '^redlatch:left:(%d+):'))
  return nil, left - (grace or 0), grace
end

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
local function go_to(name)
  key, queue, lease = name, name .. ':redlatch:queue', name .. ':redlatch:lease:'
  holders, calls = name .. ':redlatch:holders', name .. ':redlatch:called'
  permits_in_use = name .. ':redlatch:permits'
end

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

local function keep_longer(held, left, grace)
  local is_left = grace and string.sub(held, 1, 14) == 'redlatch:left:'
  if is_left and grace == 0 then
    call('SET', key, 'redlatch:left:1000' .. string.sub(held, 16), 'PX', left + 1000)
  elseif grace == 0 and call('ZCARD', queue) > 1 then
    call('SET', key, string.sub(held, 1, 38) .. 1000, 'PX', left + 1000)
  end
end

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

if #KEYS > 1 and number_asked == '0' then
  for _, name in ipairs(KEYS) do
    go_to(name)
    number_asked = math.max(number_asked, call('ZSCORE', queue, waiter) or next_number())
  end
end
local largest, last, most, is_out, ends, late, mine_ends, mine = 0, 0, 0, false, nil, 0, nil, {}
local number, place, is_mine, was_out, left, waiting, free
for index, name in ipairs(KEYS) do
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
for _, name in ipairs(#KEYS > 1 and mine or {}) do
  local grace = tonumber(string.sub(call('GET', name), 39)) or 0
  if ends then
    call('PEXPIRE', name, math.max(claim, lease_in_front) + grace)
  elseif call('PTTL', name) > claim + grace then
    call('PEXPIRE', name, claim + grace)
  end
end
local flags = (ends and 0 or 1) + (is_out and 2 or 0) + (mine[1] and 4 * late or 0)
return {ARGV[6] + 0, largest, last, flags, ends or mine_ends, most, free}
