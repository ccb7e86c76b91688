-- Answers whose reign a group is in: the number, the marker `KEYS[1]` as it is afterwards, the id of
-- the reign, and the server's clock in milliseconds. A reign is the time for which one process is
-- master without a break: `INFO` names it by `master_replid`, which no other reign ever has. A
-- server that names none answers the number alone. Refuses on a server that is not a master.
--
-- The marker is `redlatch1`, the run of the server, the id, the epoch of the failover authority,
-- since when the reign is known, and a nonce. It has no ttl. `since` is the server's clock in
-- milliseconds, rounded up, so that a quarantine is never short. Where an earlier reign is known,
-- the nonce ends in `after` and the first digits of its id: locks of that one may still be held, so
-- nobody may say that the group is used for the first time. It is known from the marker that is
-- replaced, from who is greeted and has seen one before, or from the server, if that names the id
-- with which it was a replica. Clients take such a nonce for one word, also old ones. (Those wrote
-- `-` for a time that a majority of the group was to vouch for: such a marker fits no reign.)
--
-- `ARGV[1]` the run, `ARGV[2]` the epoch, `ARGV[3]` the nonce, `ARGV[4]` the step, `ARGV[5]` the
-- marker that the client was greeted with last, or nothing, `ARGV[6]` the number. By `greet`, a
-- marker of this reign whose epoch is not below stays as it is, or is told of an earlier reign that
-- the client knows of. Any other, or none, is replaced.
--
-- People have two more steps: `adopt` replaces a marker of this reign by one with that nonce which
-- says that the reign is known since 1970, unless an earlier one is known, and `renew` replaces it
-- by one that fits no reign. Whoever was greeted with the one before gets no vote until it greets
-- again. The marker of a group whose replicas acknowledge each vote is a hash: all steps fail.
--
-- Late, or once more, as `Reign`: What is written tells of the reign in which it is written, by the
-- clock of that moment, and whoever was greeted with another marker gets no vote until it greets
-- again. An `adopt` that is late finds another reign, and whoever ordered it has vouched for all of
-- this one; a `renew` makes the quarantine longer. A greeting that is late may tell of an earlier
-- reign, which forbids no more than to adopt this one.

local info = redis.call('INFO', 'replication')
if not string.find(info, '\nrole:master', 1, true) then
  return -ARGV[6]
end
local id = string.match(info, '\nmaster_replid:(%w+)')
if not id then
  return {ARGV[6] + 0}
end
local marker, time = redis.call('GET', KEYS[1]), redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local clock = string.format('%.0f', math.ceil(now))
local run, of, epoch, known, nonce =
  string.match(marker or '', '^redlatch1 (%w+) (%w+) (%d+) (%d+) (%w+)$')
local fits = run == ARGV[1] and of == id and tonumber(epoch) >= tonumber(ARGV[2])
local word, since = ARGV[3]
local is_later = fits and string.find(nonce, 'after', 1, true)
local last = ARGV[5] ~= '' and ARGV[5]
local saw_another = last and string.match(last, '%w*$') ~= nonce

-- What the nonce of a new marker ends in, after this one or another reign of the server.
local function after(before)
  local former = before and (string.match(before, '^redlatch1 %w+ (%w+)') or 'unknown')
  former = former or string.match(info, '\nmaster_replid2:(0*[1-9a-f]%w*)')
  return former and 'after' .. string.sub(former, 1, 8) or ''
end

if ARGV[4] == 'adopt' then
  since = fits and not is_later and '0'
elseif ARGV[4] == 'renew' then
  marker = 'redlatch1 renewed ' .. id
  redis.call('SET', KEYS[1], marker)
elseif not fits then
  since = clock
  word = word .. after(marker or last)
elseif saw_another and not is_later and known ~= '0' then
  since, word = known, nonce .. after(last)
end
if since then
  marker = table.concat({'redlatch1', ARGV[1], id, fits and epoch or ARGV[2], since, word}, ' ')
  redis.call('SET', KEYS[1], marker)
end
return {ARGV[6] + 0, marker, id, math.floor(now)}
