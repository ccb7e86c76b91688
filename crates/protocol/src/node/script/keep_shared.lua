local now, held = time(), call('GET', key)
local slot, value, is_restored = ARGV[1], ARGV[2], ARGV[4] ~= ''
local ends = now + ARGV[3]
if held == shared then
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
elseif is_restored and (not held or string.sub(held, 1, 18) == reserved) then
  call('DEL', holders, permits_in_use, calls)
else
  return -ARGV[5]
end
local before = call('ZSCORE', holders, slot .. ':' .. value)
if not before then
  local readers = are_readers()
  if not is_restored or readers ~= nil and readers ~= (slot == '') then
    return -ARGV[5]
  end
  local other = slot ~= '' and find_slot(value, 1)
  if other then
    ends = math.max(ends, tonumber(call('ZSCORE', holders, other .. ':' .. value)))
    drop(other, value)
  end
  if slot ~= '' and call('ZCOUNT', permits_in_use, slot, slot) > 0 then
    set_expiry(now)
    return -ARGV[5]
  end
end
if not before or tonumber(before) < ends then
  hold(slot, value, ends, now)
end
return ARGV[5] + 0
