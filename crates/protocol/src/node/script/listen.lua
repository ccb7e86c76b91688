-- Reads a lock's key `KEYS[1]`, so that the server tells this connection when it changes. `ARGV[1]`
-- is the number. Answers yes if there is such a key.
--
-- Late, or once more, as `Listen`: Changes nothing. The node notifies on the connection that the
-- commands came on.

return redis.call('EXISTS', KEYS[1]) == 1 and ARGV[1] + 0 or -ARGV[1]
