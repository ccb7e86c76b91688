if accepted and string.sub(accepted, 1, 36) == ARGV[2] then
  return {number}
end
local refusal = outbid(ARGV[2])
if refusal then
  return refusal
end
local value = ARGV[2] .. ARGV[4]
make_promise(ARGV[3], promise and accepted and #value <= #accepted)
redis.call('SET', KEYS[1], value)
return {number}
