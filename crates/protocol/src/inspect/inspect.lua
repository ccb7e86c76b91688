-- Reads a lock's key `KEYS[1]`; `ARGV[1]` is the number. Answers a list: the number, the key's
-- value, its ttl in milliseconds, the names and leases of the first hundred waiters, the members
-- and remaining milliseconds of the first hundred holders of shares, and how many waiters and
-- holders there are; if they are more than a hundred, some may have expired. Waiters and holders
-- are lists of lists of up to 64 elements, the most that a client accepts. A value that is longer
-- than any of ours is cut off, and 0 stands for a value that is not a string.
--
-- Late, or once more, as `Look`: Changes nothing.

local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if not string.find(value.err, 'wrong kind of value') then
    return value
  end
  value = 0
end
local left = redis.call('PTTL', KEYS[1])
if value and string.sub(value, 1, 18) == 'redlatch:reserved:' then
  left = left - (tonumber(string.sub(value, 39)) or 0)
  value = string.sub(value, 1, 38)
elseif value and string.find(value, '^redlatch:left:%d+:') then
  local grace, holder = string.match(value, '^redlatch:left:(%d+):(.*)$')
  left, value = left - grace, holder
  value = left > 0 and value
end
local waiters, queue = {}, KEYS[1] .. ':redlatch:queue'
local first = redis.pcall('ZRANGE', queue, 0, 99)
for i = 1, #first do
  local lease = redis.call('GET', KEYS[1] .. ':redlatch:lease:' .. first[i])
  waiters[#waiters + 1] = lease and first[i] or nil
  waiters[#waiters + 1] = lease and string.sub(lease, 1, 1024) or nil
end
local shown, holders = {}, KEYS[1] .. ':redlatch:holders'
local clock = value == 'redlatch:shared' and redis.pcall('TIME')
if clock and clock[1] then
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  local found = redis.pcall('ZRANGEBYSCORE', holders,
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
local function count(shown, is_cut, key)
  local all = is_cut and redis.pcall('ZCARD', key)
  return type(all) == 'number' and all or shown
end
return {
  ARGV[1] + 0, value and value ~= 0 and string.sub(value, 1, 1024) or value,
  left, in_parts(waiters), in_parts(shown),
  count(#waiters / 2, #first == 100, queue), count(#shown / 2, #shown == 200, holders)
}
