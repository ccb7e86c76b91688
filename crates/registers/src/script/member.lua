local number, mark = ARGV[#ARGV] + 0, redis.call('GET', KEYS[3])
if not mark or string.sub(mark, 1, #ARGV[1]) ~= ARGV[1] then
  return {-number, mark and string.sub(mark, 1, 8192)}
end
local accepted, promise = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
local function number_of(ballot)
  return tonumber(string.sub(ballot, 1, 16))
end
local function floor()
  return tonumber(redis.call('GET', KEYS[4]) or '0')
end
local function outbid(ballot)
  local least = promise and number_of(promise) or floor()
  if ballot ~= promise and number_of(ballot) <= least then
    return {-number, least, accepted, floor()}
  end
end
