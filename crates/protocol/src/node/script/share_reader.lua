-- The short way of `share.lua`, before its functions are made: a reader without a counter gets its
-- share if there is no queue, and the key does not exist or is shared by readers of whom none has
-- expired.

if ARGV[3] == '0' and ARGV[5] == '' and (ARGV[7] == '0' or not KEYS[2])
  and redis.call('EXISTS', KEYS[1] .. ':redlatch:queue') == 0 then
  local held, holders = redis.call('GET', KEYS[1]), KEYS[1] .. ':redlatch:holders'
  local clock, has_place = redis.call('TIME'), not held
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  if not held then
    redis.call('DEL', holders, KEYS[1] .. ':redlatch:called')
  elseif held == 'redlatch:shared' then
    local first = redis.call('ZRANGE', holders, 0, 0, 'WITHSCORES')
    has_place = first[1] and string.sub(first[1], 1, 1) == ':' and tonumber(first[2]) > now
  end
  if has_place and redis.call('ZADD', holders, 'NX', now + ARGV[2], ':' .. ARGV[1]) == 1 then
    if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
      redis.call('PEXPIRE', holders, ARGV[2])
      redis.call('SET', KEYS[1], 'redlatch:shared', 'PX', ARGV[2])
    end
    return {ARGV[8] + 0, 1, 0, -1}
  end
end
