local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local denied
local function ask(verb, key)
  local answer = redis.pcall(verb, key)
  if type(answer) == 'table' and string.find(answer.err, "can't run this command", 1, true) then
    denied = answer
  end
  return answer
end
local keys, bytes = {}, 0
for _, key in ipairs(page[2]) do
  local length = not string.find(key, ':redlatch:', 1, true) and ask('STRLEN', key)
  local is_short = type(length) == 'number' and length > 0 and length < 1024
  local left = is_short and ask('PTTL', key)
  if type(left) == 'number' and left >= 0 then
    keys[#keys + 1] = key
    bytes = bytes + #key
  end
end
if denied then
  return denied
end
if #keys > 4096 or bytes > 204800 then
  return {ARGV[4] + 0, ARGV[1], false}
end
local parts = {}
for i = 1, #keys, 64 do
  parts[#parts + 1] = {unpack(keys, i, math.min(i + 63, #keys))}
end
return {ARGV[4] + 0, page[1], parts}
