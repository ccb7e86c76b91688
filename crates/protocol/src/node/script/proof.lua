-- Repeats the number, and does nothing with the key.

return ARGV[1] + 0
