-- Answers whose reign a group is in whose replicas acknowledge each vote: the number, the marker
-- `KEYS[1]` as it is afterwards, the id of the reign, the server's clock in milliseconds, how far
-- the server had written before this, how many replicas it lists, how far each of them has that is
-- online, by its own acknowledgements, and `after`. A server that is not a master refuses; one that
-- names no reign answers the number alone; and one whose marker is of another mode, or of another
-- number of replicas, answers the number and that marker.
--
-- An acknowledgement of an offset is never older than the write that made the offset. That a
-- replica is good, or how late its last acknowledgement is (`lag`), proves nothing: a server that
-- was stopped finds old ones in its sockets. A replica that has connected again may be listed
-- twice, until its former connection ends: it counts once.
--
-- The marker is a hash, so that a program of another mode, which reads a text, gets an error and
-- replaces nothing. It is told as one text: `redlatch2`, the run of the server, the id, the epoch
-- of the failover authority, since when the reign is known, a nonce, the number of replicas, and
-- the id and the run of the reign before. `since` is the server's clock, rounded up; `-` as long as
-- no vote of the reign was acknowledged; 0 if nothing that ever counted is missing. The reign
-- before is named only if its history can be proven from here on: the marker that is replaced is of
-- the reign that the server followed (`master_replid2`), and no quarantine was left in it.
-- Otherwise it is 0. Apart from that text, `after` has the first digits of any earlier reign that
-- is known: where there is one, nobody may say that the group is used for the first time.
--
-- `ARGV[1]` the run, `ARGV[2]` the epoch, `ARGV[3]` the nonce, `ARGV[4]` the step, `ARGV[5]` the
-- marker that the client was greeted with last, or nothing, `ARGV[6]` the number of replicas,
-- `ARGV[7]` how long a quarantine takes in milliseconds, `ARGV[8]` the number. `greet` replaces a
-- marker that is not of this reign, or is of a lower epoch. The other steps change only the marker
-- of this reign with this nonce: `confirm` sets the clock if it has `-`; `prove` sets 0, for who
-- has seen that nothing is missing. `touch` writes a marker of this mode as it is: so there is a
-- write which replicas acknowledge, which a server does although it has no memory left. `check`
-- only answers.
--
-- People have two more: `adopt` replaces a marker of this reign by one with that nonce which says
-- that nothing is missing, unless an earlier reign is known, and `renew` replaces any marker, also
-- one of another mode, by one of this mode that fits no reign.
--
-- The offset is taken behind the votes that stand before this on the connection, and in front of
-- this script's own write: a replica that has acknowledged it has all of those votes.
--
-- Late, or once more, as `Reign`: What is written tells of the reign in which it is written, by the
-- clock of that moment, and whoever was greeted with another marker gets no vote until it greets
-- again. A `confirm` that is late finds another nonce, or makes the quarantine longer. A `prove`
-- that is late finds another nonce, or says what has been true since the reign began.

local info, key, number = redis.call('INFO', 'replication'), KEYS[1], ARGV[8] + 0
if not string.find(info, '\nrole:master', 1, true) then
  return -number
end
local id = string.match(info, '\nmaster_replid:(%w+)')
local offset = tonumber(string.match(info, '\nmaster_repl_offset:(%d+)'))
if not id or not offset then
  return {number}
end
local kind, step = redis.call('TYPE', key).ok, ARGV[4]
local known = {}
if kind == 'hash' then
  known = redis.call('HMGET', key, 'run', 'id', 'epoch', 'since', 'nonce', 'replicas', 'former',
    'former_run', 'after')
end
local run, of, epoch, since, nonce = known[1], known[2], known[3], known[4], known[5]
local replicas, former, former_run, after = known[6], known[7], known[8], known[9]

local function marker()
  local words = {'redlatch2', run, of, epoch, since, nonce, replicas, former, former_run}
  return run and table.concat(words, ' ')
end

if kind ~= 'none' and replicas ~= ARGV[6] and step ~= 'renew' then
  return {number, marker() or kind}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local clock = string.format('%.0f', math.ceil(now))
local fits = run == ARGV[1] and of == id and tonumber(epoch) >= tonumber(ARGV[2])
local is_own = fits and nonce == ARGV[3]
local last_id, last_nonce = string.match(ARGV[5], '^redlatch2 %w+ (%w+) %d+ [%d-]+ (%w+)')
local changes = false

if step == 'greet' and not fits then
  local followed = string.match(info, '\nmaster_replid2:(0*[1-9a-z]%w*)')
  local is_over = since == '0' or since and since ~= '-' and now >= since + ARGV[7]
  replicas, former, former_run = ARGV[6], '0', '0'
  if is_over and of == followed then
    former, former_run = of, run
  end
  after = string.sub(of or last_id or followed or '0', 1, 8)
  run, of, epoch, since, nonce = ARGV[1], id, ARGV[2], '-', ARGV[3]
  changes = true
elseif step == 'greet' and last_nonce and last_nonce ~= nonce and after == '0'
  and since ~= '0' then
  after, changes = string.sub(last_id, 1, 8), true
elseif step == 'confirm' and is_own and since == '-' then
  since, changes = clock, true
elseif step == 'prove' and is_own then
  since, changes = '0', true
elseif step == 'touch' and run then
  redis.call('PEXPIRE', key, '3155760000000')
elseif step == 'adopt' and fits and after == '0' then
  since, nonce, changes = '0', ARGV[3], true
elseif step == 'renew' then
  redis.call('DEL', key)
  run, of, epoch, since, nonce = 'renewed', id, '0', '-', '0'
  replicas, former, former_run, after = ARGV[6], '0', '0', string.sub(id, 1, 8)
  changes = true
end
if changes then
  redis.call('HSET', key, 'run', run, 'id', of, 'epoch', epoch, 'since', since, 'nonce', nonce,
    'replicas', replicas, 'former', former, 'former_run', former_run, 'after', after)
end

local places, offsets, index_of = {}, {}, {}
for place, state, acknowledged in
  string.gmatch(info, '\nslave%d+:(ip=[^,]*,port=%d+),state=([^,]+),offset=(%d+)') do
  places[place] = true
  if state == 'online' then
    index_of[place] = index_of[place] or #offsets + 1
    offsets[index_of[place]] = math.max(offsets[index_of[place]] or 0, tonumber(acknowledged))
  end
end
local listed = 0
for _ in pairs(places) do
  listed = listed + 1
end
return {number, marker() or false, id, math.floor(now), offset, listed, offsets, after or '0'}
