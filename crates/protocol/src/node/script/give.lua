local value, waiter, linger, ours, failed = ARGV[1], ARGV[2], ARGV[3], 0, nil
for _, name in ipairs(KEYS) do
  key, queue, lease = name, name .. ':redlatch:queue', name .. ':redlatch:lease:'
  local held, was_first, is_kept = try('GET', key), false, false
  if waiter ~= '' then
    was_first = try('ZRANK', queue, waiter) == 0
    leave(waiter)
    is_kept = string.sub(tostring(held), 1, 38) == 'redlatch:reserved:' .. waiter
  end
  if held == value and linger ~= '' then
    local grace = tell_at(0, 'w' .. linger) and 1000 or 0
    call('SET', key, 'redlatch:left:' .. grace .. ':' .. value, 'PX', linger + grace)
  elseif held == value or is_kept and linger == '' then
    reserve()
  elseif was_first and held and linger == '' then
    tell_at(0, 'w0')
  end
  ours = held == value and ours + 1 or ours
  failed = type(held) == 'table' and held or failed
end
return failed or ours == #KEYS and ARGV[4] + 0 or -ARGV[4]
