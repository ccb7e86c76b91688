-- Lists the next keys that match a pattern and may be locks: strings with a ttl that are no longer
-- than a lock's value, and no keys of queues. `ARGV[1]` is the server's cursor, `ARGV[2]` the
-- pattern, `ARGV[3]` about how many keys the server looks at, `ARGV[4]` is `locks`, and `ARGV[5]`
-- the number. With `registers`, it lists the keys of their promises instead.
--
-- Answers a list: the number, the next cursor or 0 at the end, and the keys in lists of up to 64;
-- or null for them, and the same cursor, if they are more than fit in a reply.
--
-- Late, or once more, as `Listing`: Changes nothing.

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
