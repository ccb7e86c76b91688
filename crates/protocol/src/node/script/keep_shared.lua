-- Extends a share of a lock, or gives it again, as `keep.lua` does with a lock: `KEYS[1]` the key,
-- `ARGV[1]` the permit or nothing, `ARGV[2]` our value, `ARGV[3]` the ttl in milliseconds,
-- `ARGV[4]` nothing to extend it, `restore` to give it again, `ARGV[5]` the number.
--
-- It never shortens a share. A share that is given again takes the place of another permit that the
-- node gave for this value. Where another client has this permit, or the lock itself, the answer is
-- no; the other permit is given up anyway.
--
-- Late, or once more, as `Extend` of a share: As for a lock: it looks for the token, and never
-- shortens the share.
--
-- Late, or once more, as `Restore` of a share: It looks for the token, and never shortens the
-- share. A permit that was restored late may be one whose holder has given it up: it stays for one
-- more ttl. Where another client has that permit, only a share of the same token with another
-- number is removed, which no vote is for: after its release there is none.

local now, held = time(), call('GET', key)
local slot, value, is_restored = ARGV[1], ARGV[2], ARGV[4] ~= ''
local ends = now + ARGV[3]
if held == shared then
  call('ZREMRANGEBYSCORE', holders, '-inf', now)
elseif is_restored and (not held or string.sub(held, 1, 18) == reserved) then
  call('DEL', holders, permits_in_use, calls)
else
  return -ARGV[5]
end
local before = call('ZSCORE', holders, slot .. ':' .. value)
if not before then
  local readers = are_readers()
  if not is_restored or readers ~= nil and readers ~= (slot == '') then
    return -ARGV[5]
  end
  local other = slot ~= '' and find_slot(value, 1)
  if other then
    ends = math.max(ends, tonumber(call('ZSCORE', holders, other .. ':' .. value)))
    drop(other, value)
  end
  if slot ~= '' and call('ZCOUNT', permits_in_use, slot, slot) > 0 then
    set_expiry(now)
    return -ARGV[5]
  end
end
if not before or tonumber(before) < ends then
  hold(slot, value, ends, now)
end
return ARGV[5] + 0
