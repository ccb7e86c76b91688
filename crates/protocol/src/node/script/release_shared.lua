local value, waiter, linger = ARGV[1], ARGV[3], ARGV[4]
local held, now, found, was_first = try('GET', key), time(), false, false
if waiter ~= '' then
  was_first = try('ZRANK', queue, waiter) == 0
  leave(waiter)
  try('ZREM', calls, waiter)
  if string.sub(tostring(held), 1, 38) == reserved .. waiter then
    held = false
  end
end
if held == shared then
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
  local slot = ARGV[2] == '0' and '' or call('ZSCORE', permits_in_use, value)
  local member = slot and slot .. ':' .. value
  found = member and call('ZREM', holders, member) == 1
  if found and linger ~= '' then
    call('ZADD', holders, now + linger, member)
    set_expiry(now)
    tell_at(0, 'w' .. linger)
    return ARGV[5] + 0
  elseif found then
    call('ZREM', permits_in_use, value)
  end
end
if not held or held == shared then
  settle(held, now, was_first and 0)
end
return found and ARGV[5] + 0 or -ARGV[5]
