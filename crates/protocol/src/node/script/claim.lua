local locks, held, fence = tonumber(ARGV[1]), 0, 0
local from, waiter, others, heads = ARGV[2], ARGV[7], 0, {}
local is_turn = string.sub(from, 1, 18) == 'redlatch:reserved:'
for i = 1, locks do
  local value, queue = redis.call('GET', KEYS[i]), KEYS[i] .. ':redlatch:queue'
  local head = is_turn and redis.call('ZRANGE', queue, 0, 0)[1]
  if value and (from == '' or (is_turn and string.sub(value, 1, 38) or value) ~= from)
    or not value and head and head ~= waiter then
    return -ARGV[8]
  end
  held, heads[i] = value and held + 1 or held, head
end
for i = locks + 1, #KEYS do
  local counter, problem = read_counter(KEYS[i], 2^52 + 2^40)
  if problem then
    return problem
  end
  fence = math.max(fence, tonumber(ARGV[5]), counter and counter + 1 or 0)
end
for i = 1, locks do
  redis.call('SET', KEYS[i], ARGV[3], 'PX', ARGV[4])
end
for i = locks + 1, #KEYS do
  write_counter(KEYS[i], string.format('%.0f', fence), ARGV[6])
end
for i = 1, locks do
  local queue, lease = KEYS[i] .. ':redlatch:queue', KEYS[i] .. ':redlatch:lease:' .. waiter
  if is_turn then
    local left = math.min(redis.call('PTTL', lease), tonumber(ARGV[4]))
    if left > 0 then
      redis.call('SET', lease, '', 'PX', left)
    end
  elseif waiter ~= '' then
    redis.pcall('ZREM', queue, waiter)
    redis.call('DEL', lease)
  end
  local waiting = redis.pcall('ZCARD', queue)
  waiting = type(waiting) == 'number' and waiting - (heads[i] == waiter and 1 or 0) or 0
  others = math.max(others, waiting)
end
local is_new = (is_turn or held < locks) and 1 or 0
return {ARGV[8] + 0, is_new, fence, others > 0 and 1 or 0}
