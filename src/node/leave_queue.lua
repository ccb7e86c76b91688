local held = redis.pcall('GET', key)
local was_first = redis.pcall('ZRANK', queue, ARGV[2]) == 0
redis.pcall('ZREM', queue, ARGV[2])
redis.call('DEL', lease .. ARGV[2])
local is_mine = type(held) == 'string'
  and string.sub(held, 1, 38) == 'redlatch:reserved:' .. ARGV[2]
if is_mine or held == ARGV[1] then
  reserve()
elseif was_first and held then
  tell_at(0, 'w0')
end
return held == ARGV[1] and ARGV[3] + 0 or -ARGV[3]
