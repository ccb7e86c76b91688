-- Writes keys, behind `member.lua`.

-- Writes a promise or a value. If it `fits` into the place of the one before, this needs no more
-- memory, and is done at `maxmemory` as well.
local function put(key, value, fits)
  if not fits or not redis.pcall('SET', key, value).ok then
    if fits then
      redis.pcall('PERSIST', key)
    end
    redis.call('SET', key, value)
  end
end
