return ARGV[1] + 0
