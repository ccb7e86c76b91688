if accepted and string.sub(accepted, 1, 36) == ARGV[2] then
  return {number}
end
local refusal = outbid(ARGV[2])
if refusal then
  return refusal
end
redis.call('SET', KEYS[2], ARGV[3])
redis.call('SET', KEYS[1], ARGV[2] .. ARGV[4])
return {number}
