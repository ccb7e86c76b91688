//! What comes over a connection late, twice, unasked or from something that is not Redis: none of
//! it is a vote, and none of it harms a lock.

mod duplicated_commands;
mod late;
mod non_redis_peers;
mod other_connections;
mod stray;
