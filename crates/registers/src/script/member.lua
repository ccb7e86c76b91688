-- The beginning of the scripts that only a member of the group carries out: what it has accepted
-- and promised. A node with another mark answers no, and that mark.

local number, mark = ARGV[#ARGV] + 0, redis.call('GET', KEYS[3])
if not mark or string.sub(mark, 1, #ARGV[1]) ~= ARGV[1] then
  return {-number, mark and string.sub(mark, 1, 8192)}
end
local accepted, promise = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])

-- The number with which a ballot begins.
local function number_of(ballot)
  return tonumber(string.sub(ballot, 1, 16))
end

-- No ballot up to this number is accepted where nothing is promised: of what deleted registers had.
local function floor()
  return tonumber(redis.call('GET', KEYS[4]) or '0')
end

-- The refusal of a ballot that is not above what was promised.
local function outbid(ballot)
  local least = promise and number_of(promise) or floor()
  if ballot ~= promise and number_of(ballot) <= least then
    return {-number, least, accepted, floor()}
  end
end
