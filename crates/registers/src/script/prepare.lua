local refusal = outbid(ARGV[2])
if refusal then
  return refusal
end
make_promise(ARGV[2], promise)
return {number, accepted, floor()}
