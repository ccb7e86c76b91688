local refusal = outbid(ARGV[2])
if refusal then
  return refusal
end
redis.call('SET', KEYS[2], ARGV[2])
return {number, accepted, floor()}
