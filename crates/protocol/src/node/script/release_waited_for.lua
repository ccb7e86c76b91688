reserve()
return ARGV[2] + 0
