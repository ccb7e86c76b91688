-- Promises, behind `member.lua`.

-- Notes a promise. If the value `fits`, this needs no more memory, and is done at `maxmemory` as
-- well.
local function make_promise(ballot, fits)
  if not fits or not redis.pcall('SET', KEYS[2], ballot).ok then
    if fits then
      redis.pcall('PERSIST', KEYS[2])
    end
    redis.call('SET', KEYS[2], ballot)
  end
end
