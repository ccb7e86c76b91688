if accepted == ARGV[2] or not accepted and promise and ARGV[2] == '' then
  local least = number_of(promise)
  if least > floor() then
    redis.call('SET', KEYS[4], string.format('%.0f', least))
  end
  redis.call('DEL', KEYS[1], KEYS[2])
end
return {number}
