-- Raises counters to a number, if the locks still hold our value: `KEYS` and `ARGV[1]` as for
-- `claim.lua`, `ARGV[2]` our value, `ARGV[3]` the fencing token, `ARGV[4]` the least ttl of the
-- counters in milliseconds, `ARGV[5]` the number. Refuses if a key does not hold our value, or if a
-- counter is above the fencing token: another client may then have been granted this token. A
-- counter that is not a number is an error.
--
-- Late, or once more, as `Fence`: Only while the lock's keys hold this token. Raises counters and
-- extends their ttl, as `claim.lua` does.

local locks, tokens, is_shared = tonumber(ARGV[1]), {}, false
for i = 1, locks do
  local held = redis.call('GET', KEYS[i])
  if held == 'redlatch:shared' then
    is_shared = true
    held = redis.call('ZSCORE', KEYS[i] .. ':redlatch:holders', ARGV[2]) and ARGV[2]
  end
  if held ~= ARGV[2] then
    return -ARGV[5]
  end
end
for i = locks + 1, math.min(#KEYS, 2 * locks) do
  local counter, problem = read_counter(KEYS[i], math.huge)
  local is_above = counter and tonumber(counter) > tonumber(ARGV[3])
  if problem or is_above and not is_shared then
    return problem or -ARGV[5]
  end
  tokens[i] = is_above and counter or ARGV[3]
end
for i = locks + 1, math.min(#KEYS, 2 * locks) do
  write_counter(KEYS[i], tokens[i], ARGV[4])
end
return ARGV[5] + 0
