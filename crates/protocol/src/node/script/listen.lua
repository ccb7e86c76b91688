return redis.call('EXISTS', KEYS[1]) == 1 and ARGV[1] + 0 or -ARGV[1]
