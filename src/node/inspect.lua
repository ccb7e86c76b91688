local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if not string.find(value.err, 'wrong kind of value') then
    return value
  end
  value = ''
end
local waiters = {}
local first = redis.pcall('ZRANGE', KEYS[1] .. ':redlatch:queue', 0, 99)
for i = 1, #first do
  local lease = redis.call('GET', KEYS[1] .. ':redlatch:lease:' .. first[i])
  waiters[#waiters + 1] = lease and first[i] or nil
  waiters[#waiters + 1] = lease and string.sub(lease, 1, 1024) or nil
end
local shown = {}
local clock = value == 'redlatch:shared' and redis.pcall('TIME')
if clock and clock[1] then
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local found = redis.pcall('ZRANGEBYSCORE', KEYS[1] .. ':redlatch:holders',
    string.format('(%.0f', now), string.format('%.0f', now + 2^42), 'WITHSCORES', 'LIMIT', 0, 100)
  for i = 1, #found, 2 do
    shown[i], shown[i + 1] = string.sub(found[i], 1, 1024), math.floor(found[i + 1] - now)
  end
end
local function in_parts(list)
  local parts = {}
  for i = 1, #list, 64 do
    parts[#parts + 1] = {unpack(list, i, math.min(i + 63, #list))}
  end
  return parts
end
return {
  ARGV[1] + 0, value and string.sub(value, 1, 1024), redis.call('PTTL', KEYS[1]),
  in_parts(waiters), in_parts(shown)
}
