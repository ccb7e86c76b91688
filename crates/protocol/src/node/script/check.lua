-- Answers in whose reign the votes before it on this connection were given: the number, the marker
-- `KEYS[1]`, the role of the server, and the id of the reign. `ARGV[1]` is the number.
--
-- It comes behind the votes: what is asked before them may be over when they are given. A reign
-- never comes back, so what is the same at the greeting and behind a vote was the same at the vote.
--
-- Late, or once more, as `Reign`: Changes nothing.

local info = redis.call('INFO', 'replication')
return {
  ARGV[1] + 0,
  redis.call('GET', KEYS[1]),
  string.match(info, '\nrole:(%w+)') or false,
  string.match(info, '\nmaster_replid:(%w+)') or false,
}
