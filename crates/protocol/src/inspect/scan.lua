local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local failed
local function ask(verb, key)
  local answer = redis.pcall(verb, key)
  if type(answer) ~= 'table' then
    return answer
  end
  local is_denied_key = string.find(answer.err, 'access') and string.find(answer.err, ' key')
  if not is_denied_key and not string.find(answer.err, 'wrong kind of value') then
    failed = answer
  end
end
local keys, bytes = {}, 0
for _, key in ipairs(page[2]) do
  local left = -1
  if ARGV[4] == 'registers' then
    left = 0
  elseif #key <= 64512 and not string.find(key, ':redlatch:', 1, true) then
    local length = ask('STRLEN', key) or 0
    left = length > 0 and length < 1024 and ask('PTTL', key) or -1
  end
  if left >= 0 then
    keys[#keys + 1] = key
    bytes = bytes + #key
  end
end
if failed then
  return failed
end
if #keys > 4096 or bytes > 204800 then
  return {ARGV[5] + 0, ARGV[1], false}
end
local parts = {}
for i = 1, #keys, 64 do
  parts[#parts + 1] = {unpack(keys, i, math.min(i + 63, #keys))}
end
return {ARGV[5] + 0, page[1], parts}
