-- Answers in whose reign the votes before it on this connection were given: the number, the marker
-- `KEYS[1]`, the role of the server, the id of the reign, how far the server has written, and how
-- far each replica has that is online, by its own acknowledgements. `ARGV[1]` is the number.
--
-- It comes behind the votes: what is asked before them may be over when they are given. A reign
-- never comes back, so what is the same at the greeting and behind a vote was the same at the vote.
-- That a replica is good, or how late its last acknowledgement is (`lag`), proves nothing: a server
-- that was stopped finds old ones in its sockets. An acknowledgement of an offset is never older
-- than the write that made the offset. A replica that has connected again may be listed twice,
-- until its former connection ends: it counts once.
--
-- Late, or once more, as `Reign`: Changes nothing.

local info, offsets, index_of = redis.call('INFO', 'replication'), {}, {}
for place, offset in string.gmatch(info, '\nslave%d+:([^\r\n]*),state=online,offset=(%d+)') do
  index_of[place] = index_of[place] or #offsets + 1
  offsets[index_of[place]] = math.max(offsets[index_of[place]] or 0, tonumber(offset))
end
return {
  ARGV[1] + 0,
  redis.call('GET', KEYS[1]),
  string.match(info, '\nrole:(%w+)') or false,
  string.match(info, '\nmaster_replid:(%w+)') or false,
  tonumber(string.match(info, '\nmaster_repl_offset:(%d+)')) or false,
  offsets,
}
