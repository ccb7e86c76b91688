//! Fencing tokens: numbers by which a resource rejects a stale writer.

#[cfg(test)]
use crate::engine::FENCE_MAX;
use std::fmt;

/// A number that grows with every grant of a lock, from [`LockGuard::fencing_token`].
///
/// A lock ends by the clock: a thread that is stopped at the wrong moment can write after another
/// client has acquired the lock. A lock service cannot prevent that; the resource that is written
/// to can. Send the token with every write, have the resource remember the largest token it has
/// seen, and let it reject a write with a smaller one (Martin Kleppmann, *How to do distributed
/// locking*, 2016).
///
/// In SQL, with the check and the write in one statement:
///
/// ```sql
/// UPDATE orders SET state = 'charged', fence = :token
///  WHERE id = 42 AND fence <= :token;   -- no row updated: another client has a newer token
/// ```
///
/// In a script for a Redis server that has the data (it need not be one of the lock's nodes):
///
/// ```lua
/// -- KEYS[1] the value, KEYS[2] its fence, ARGV[1] the new value, ARGV[2] the token
/// if tonumber(redis.call('GET', KEYS[2]) or 0) > tonumber(ARGV[2]) then return 0 end
/// redis.call('SET', KEYS[2], ARGV[2])
/// redis.call('SET', KEYS[1], ARGV[1])
/// return 1
/// ```
///
/// It converts into `u64` and `i64`, and back with `try_from`, so that it can be stored in a column
/// of a database.
///
/// # What is guaranteed
///
/// No two grants of a resource get the same token, and if one grant was requested after another had
/// been given, it gets the larger token. This holds however wrong the clients' wall clocks are, as
/// long as a majority of the nodes keeps its counters. It holds after a loss of data as long as the
/// wall clocks agree to within the time between two grants of which the first is forgotten: a
/// counter is never below the wall clock of the client that was granted the lock, in microseconds
/// since 1970.
///
/// A set that is locked with [`request_all`](crate::LockClient::request_all) gets one token for all
/// its resources. It is larger than every token given before to any of them, alone or in any set;
/// and every later grant of one of them gets a larger one.
///
/// # Readers and permits
///
/// A [permit](crate::LockRequest::one_of) gets a token like the exclusive lock, larger than those
/// of all grants that were made before it was requested. Two permits that are granted at the same
/// time may have the same token: compare tokens for each permit's number by itself.
///
/// A [reader's](crate::LockRequest::shared) token is at least that of the last writer before it,
/// and less than that of the next. Several readers may have the same one.
///
/// # On ZooKeeper
///
/// A token is the number of the transaction (zxid) that created the holder's place in the queue, so
/// it grows over all locks of an ensemble, over readers and permits too, whoever asks for it, and
/// needs no clock. It begins again only with an ensemble that is set up anew, or restored from a
/// backup.
///
/// **Tokens of Redis nodes and those of an ensemble do not follow each other**: the first count
/// microseconds since 1970, and those of a young ensemble are far smaller. A resource whose lock
/// moves from one to the other must have its largest token reset, while nobody holds the lock.
///
/// # What is not guaranteed
///
/// * A token orders grants. It does not stop a writer that sends no token, and a resource that does
///   not compare tokens is not protected.
/// * A counter lives for [`fencing_expiry`] after the last grant (7 days by default), and
///   extensions do not lengthen that. After a longer hold, only the wall clocks make the next token
///   larger. Keep [`max_hold`] below `fencing_expiry`, or the clocks in agreement.
/// * If another program sets a counter to more than the largest token, that node grants nothing,
///   and the lock is acquired from the other nodes. If that happens on a majority, no client can
///   acquire the lock until the counters have expired or are removed. If a counter is set a little
///   below the largest token, the others follow it, with the same effect once so many grants have
///   been counted up to it.
/// * Tokens are not consecutive. Tokens of resources that were never locked in one set are
///   unrelated.
/// * All clients that lock a resource must ask for tokens: a lock that is acquired without one is
///   not counted, so the holder before it may still have the largest token.
///
/// [`LockGuard::fencing_token`]: crate::LockGuard::fencing_token
/// [`fencing_expiry`]: crate::Builder::fencing_expiry
/// [`max_hold`]: crate::Builder::max_hold
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

/// The largest number of a transaction of ZooKeeper. Redis nodes count less far.
const TOKEN_MAX: u64 = i64::MAX as u64;

impl FencingToken {
    pub(crate) fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number: from 1 to 2^52 + 2^40 on Redis nodes, which a double holds exactly, and from 1
    /// to 2^63 - 1 on ZooKeeper. A signed 64-bit column of a database holds both.
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

impl From<FencingToken> for u64 {
    fn from(token: FencingToken) -> Self {
        token.0
    }
}

impl From<FencingToken> for i64 {
    fn from(token: FencingToken) -> Self {
        Self::try_from(token.0).expect("a token is at most 2^63 - 1")
    }
}

impl TryFrom<u64> for FencingToken {
    type Error = FencingTokenError;

    fn try_from(number: u64) -> Result<Self, FencingTokenError> {
        let is_token = (1..=TOKEN_MAX).contains(&number);
        if is_token {
            Ok(Self(number))
        } else {
            Err(FencingTokenError(number.into()))
        }
    }
}

impl TryFrom<i64> for FencingToken {
    type Error = FencingTokenError;

    fn try_from(number: i64) -> Result<Self, FencingTokenError> {
        u64::try_from(number).map_or(Err(FencingTokenError(number.into())), Self::try_from)
    }
}

/// A number that is not a fencing token: these are from 1 to 2^63 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencingTokenError(i128);

impl fmt::Display for FencingTokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not a fencing token: it is not between 1 and {TOKEN_MAX}",
            self.0
        )
    }
}

impl std::error::Error for FencingTokenError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_converts_into_integers_and_back() {
        for number in [1, 42, FENCE_MAX, FENCE_MAX + 1, TOKEN_MAX] {
            let token = FencingToken::try_from(number).unwrap();
            assert_eq!((token.as_u64(), u64::from(token)), (number, number));
            let signed = i64::from(token);
            assert_eq!(FencingToken::try_from(signed), Ok(token));
            assert_eq!(u64::try_from(signed), Ok(number));
        }
    }

    #[test]
    fn a_number_out_of_range_is_no_token() {
        for number in [0, TOKEN_MAX + 1, u64::MAX] {
            let error = FencingToken::try_from(number).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("{number} is not a fencing token"))
            );
        }
        for number in [0, -1, i64::MIN] {
            let error = FencingToken::try_from(number).unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("{number} is not a fencing token"))
            );
        }
    }
}
