//! The Lua scripts that run on the nodes, where compare and change must be one step.
//!
//! A node keeps a script under the SHA-1 of its source once it has seen it, so a request names the
//! script by that (`EVALSHA`) and sends the source (`EVAL`) only to a node that has not run it on
//! this connection, or answers that it does not know it; and where it removes a lock, since the one
//! who would send it again may be gone. The digests are written down here and checked against the
//! sources by a test.
//!
//! The last argument of every script is a number that no other command of this client to this node
//! has, and the answer repeats it: `n` for yes, `-n` for no, or a list that begins with `n`. So a
//! reply that arrives twice is never taken for the answer to another command. (`SET`, which takes
//! a plain lock, has no room for such a proof.)
//!
//! For a lock with one key and no counter, [`RELEASE`], [`EXTEND`] and [`HANDOFF`] do the same as
//! [`RELEASE_ALL`], [`EXTEND_ALL`] and [`CLAIM`]. They exist because the general scripts cost the
//! server more time for one key (`usec_per_call` of `INFO commandstats`, redis-server 7.0.15,
//! medians of 21 alternating runs of 20 000 calls each, in multiples of the special script):
//!
//! | special | general | ratio |
//! |---|---|---|
//! | `release.lua` | `release_all.lua` | 1.04 |
//! | `extend.lua` | `extend_all.lua` | 1.04 |
//! | `handoff.lua` | `claim.lua` | 1.37 |

#[cfg(feature = "embedded")]
pub(crate) use crate::engine::FENCE_MAX;

/// As much of a value as [`INSPECT`] shows: more than any lock of this library has.
pub const SHOWN_MAX: usize = 1024;

/// A script and the name a node knows it by.
#[derive(Clone, Copy, Debug, Eq)]
#[non_exhaustive]
pub struct Script {
    /// The Lua source, byte for byte as it is sent.
    pub source: &'static str,
    /// The SHA-1 of the source, in lower-case hexadecimal.
    pub sha1: &'static str,
}

/// Two scripts of one name are one, and names are soon compared: this is asked for each command.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.sha1 == other.sha1
    }
}

/// Deletes the lock's key if it still holds our token: `KEYS[1]` the key, `ARGV[1]` the token,
/// `ARGV[2]` the number.
pub const RELEASE: Script = Script {
    source: include_str!("release.lua"),
    sha1: "b6f21aa454ac51f6395cac9031d16fcb6d10a6f6",
};

/// Lengthens the life of the lock's key if it still holds our token: `KEYS[1]` the key, `ARGV[1]`
/// the token, `ARGV[2]` the new time to live in milliseconds, `ARGV[3]` the number.
///
/// It never shortens the key's life, so an earlier and shorter extension may arrive at any time. A
/// key that has no end keeps none.
pub const EXTEND: Script =
    Script { source: include_str!("extend.lua"), sha1: "27df48610aca66b5477172e458f2a4ea0738f425" };

/// Gives the lock's key to another token if it still holds ours, or if nobody holds it: `KEYS[1]`
/// the key, `ARGV[1]` our token, `ARGV[2]` the other, `ARGV[3]` its time to live in milliseconds,
/// `ARGV[4]` the number. Answers a list: the number, and 1 if there was no key, 0 if it was ours.
pub const HANDOFF: Script = Script {
    source: include_str!("handoff.lua"),
    sha1: "d4d43b4c75a685d76af75b4586a2fcf9c9193946",
};

/// Takes locks that have more to them than one key and a token, all of them or none: `KEYS` the
/// locks' keys and then their counters', `ARGV[1]` how many of them are locks', `ARGV[2]` the value
/// of the lock that is handed over or nothing, `ARGV[3]` our value, `ARGV[4]` its time to live in
/// milliseconds, `ARGV[5]` what a counter is at least, `ARGV[6]` how long the counters live at
/// least, `ARGV[7]` the number. Where the value handed over is ours, which puts back the keys that
/// a node has lost, no key's life is shortened. A counter's life never is.
///
/// Answers a list of three: the number; 1 if some of the keys did not exist, 0 if all held the
/// value that is handed over; and, if there are counters, what all of them are now: one more than
/// the largest was. A counter is decimal digits and nothing else, whatever else Lua would read
/// as a number. One that is none, or has no room above it, is an error, and nothing is written
/// then. The error does not quote the key: that may have more bytes than a line of RESP.
pub const CLAIM: Script =
    Script { source: include_str!("claim.lua"), sha1: "3b981332772e2db735b9d875e46089561ba4fe43" };

/// Raises counters to a number, if the locks still hold our value: `KEYS` and `ARGV[1]` as for
/// [`CLAIM`], `ARGV[2]` our value, `ARGV[3]` the fencing token, `ARGV[4]` how long the counters
/// live at least, in milliseconds, `ARGV[5]` the number. Refuses where a lock is not ours or a
/// counter is above the fencing token: then it may have been at that before, for somebody else. A
/// counter that is no number is an error.
pub const FENCE: Script =
    Script { source: include_str!("fence.lua"), sha1: "2a3bdeb7f64a44f5e73e52128eaa08d7c981e569" };

/// As [`RELEASE`], for several keys. Answers yes if it deleted all of them.
pub const RELEASE_ALL: Script = Script {
    source: include_str!("release_all.lua"),
    sha1: "618a51a85332b497c2818cbba8d8cbce1302bc88",
};

/// As [`EXTEND`], for several keys: the life of each is lengthened, if all are ours.
pub const EXTEND_ALL: Script = Script {
    source: include_str!("extend_all.lua"),
    sha1: "a810784c344294a8b8121d60fec7c9dccafe10d5",
};

/// Looks at a lock's key `KEYS[1]`; `ARGV[1]` is the number. Answers a list: the number, the key's
/// value, and how many milliseconds it has to live. Of a value that is longer than any of ours it
/// answers the beginning, and of what is no string an empty one: whatever is there, it keeps the
/// lock from being had.
pub const INSPECT: Script = Script {
    source: include_str!("inspect.lua"),
    sha1: "99232a055518e7b71f3bdcef4a079b537ca3e406",
};

/// Deletes a lock's key `KEYS[1]`, whosever it is, if it holds one of the values that were seen
/// there: all of `ARGV` but the last, which is the number.
pub const REMOVE: Script =
    Script { source: include_str!("remove.lua"), sha1: "fb7e7ce4478e1283a564cc76dda97cd8679ed6cf" };

/// Sets how long a lock that was given up early stays taken: `KEYS` the lock's keys, `ARGV[1]` our
/// value, `ARGV[2]` the time to live in milliseconds, `ARGV[3]` the number. It sets the time to
/// live of each key that holds our value, shorter or longer than it was, and removes none. Answers
/// yes if all keys held our value.
pub const LEAVE: Script =
    Script { source: include_str!("leave.lua"), sha1: "c57c773b866370d48b250720662967109a071325" };

/// Every script of this library.
pub const ALL: [Script; 10] =
    [RELEASE, EXTEND, HANDOFF, CLAIM, FENCE, RELEASE_ALL, EXTEND_ALL, INSPECT, REMOVE, LEAVE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digests_are_those_of_the_sources() {
        for script in ALL {
            let digest = sha1_smol::Sha1::from(script.source).digest().to_string();
            assert_eq!(script.sha1, digest, "{}", script.source);
        }
    }
}
