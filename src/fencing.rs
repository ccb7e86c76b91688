//! Numbers that tell a late writer from the one that holds the lock now.

use std::fmt;

/// A number that grows with every grant of a lock, from [`LockGuard::fencing_token`].
///
/// A lease ends by the clock: a holder that was stopped at the wrong moment may write after another
/// has got the lock. A lock service cannot prevent that; the resource that is written to can. Give
/// it the token with every write, have it remember the largest it has seen, and let it refuse what
/// comes with a smaller one (Martin Kleppmann, *How to do distributed locking*, 2016).
///
/// In SQL, with the check and the write in one statement:
///
/// ```sql
/// UPDATE orders SET state = 'charged', fence = :token
///  WHERE id = 42 AND fence <= :token;   -- no row updated: the lock was lost, and another has it
/// ```
///
/// In a script for a Redis server that holds the data (and need not be one of the locks' nodes):
///
/// ```lua
/// -- KEYS[1] the value, KEYS[2] its fence, ARGV[1] the new value, ARGV[2] the token
/// if tonumber(redis.call('GET', KEYS[2]) or 0) > tonumber(ARGV[2]) then return 0 end
/// redis.call('SET', KEYS[2], ARGV[2])
/// redis.call('SET', KEYS[1], ARGV[1])
/// return 1
/// ```
///
/// # What is guaranteed
///
/// No two grants of a resource get the same token, and a grant that was asked for after another had
/// been given gets the larger one. This holds however wrong the clients' wall clocks are, as long
/// as a majority of the nodes keeps its counters; and it holds across lost data as long as the wall
/// clocks agree, to within the time that passes between two grants of which the first is forgotten:
/// a counter is never below the wall clock of the client that was granted the lock, in microseconds
/// since 1970.
///
/// # What is not
///
/// * A token orders grants. It does not keep anybody from writing who never shows one, and a
///   resource that does not compare is not protected.
/// * A counter lives for [`fencing_expiry`] after the last grant (7 days unless something else is
///   said), and extensions do not prolong that. Of a lock that is held for longer, the counters are
///   gone before it is granted again, and then the wall clocks alone make the next token larger.
///   Keep [`max_hold`] below `fencing_expiry`, or the clocks in agreement.
/// * A counter that somebody sets to more than the largest token is left alone, and the lock is had
///   from the other nodes; on a majority, nobody has it until the counters have expired or are
///   removed. One that is set a little below the largest is followed by the others, and has the
///   same effect when so many grants have been counted up to it.
/// * Tokens are not dense, and those of different resources have nothing to do with each other.
/// * All clients that lock a resource must ask for tokens: a lock that is taken without one does
///   not count, so the holder before it may still have the largest.
///
/// [`LockGuard::fencing_token`]: crate::LockGuard::fencing_token
/// [`fencing_expiry`]: crate::Builder::fencing_expiry
/// [`max_hold`]: crate::Builder::max_hold
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number: at most 2^52 + 2^40, so that it fits what databases and scripts count with.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
