redis.call('GET', KEYS[1])
return ARGV[1] + 0
