if call('GET', key) ~= ARGV[1] then
  return -ARGV[2]
end
reserve()
return ARGV[2] + 0
