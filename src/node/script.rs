//! The Lua scripts that run on the nodes, where compare and change must be one step.
//!
//! A node keeps a script under the SHA-1 of its source once it has seen it, so a request names the
//! script by that (`EVALSHA`) and sends the source (`EVAL`) only to a node that has not run it on
//! this connection, or answers that it does not know it. The digests are written down here and
//! checked against the sources by a test.

#[cfg(feature = "embedded")]
pub(crate) use crate::engine::FENCE_MAX;

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

/// Deletes the lock's key if it still holds our token: `KEYS[1]` the key, `ARGV[1]` the token.
/// Answers 1 if it deleted the key and 0 if the key is gone or another's.
pub const RELEASE: Script = Script {
    source: include_str!("release.lua"),
    sha1: "c89cee65b7ab260d98c281f3c3eb6fa7c992cdd2",
};

/// Lets the lock's key live on if it still holds our token: `KEYS[1]` the key, `ARGV[1]` the
/// token, `ARGV[2]` the new time to live in milliseconds. Answers 1 if the key is ours and 0 if it
/// is gone or another's.
///
/// It never shortens the key's life. Commands reach a node in the order they were sent, so a time
/// to live at least as long as every earlier one cannot; a shorter one is sent with `ARGV[3]`,
/// which makes the script look at what is left first. (That costs the user the right to `PTTL` as
/// well, which is why it is not always done.)
pub const EXTEND: Script =
    Script { source: include_str!("extend.lua"), sha1: "1ccb475e036683cda4ef800769a1fee82ea13ea6" };

/// Gives the lock's key to another token if it still holds ours, or if nobody holds it: `KEYS[1]`
/// the key, `ARGV[1]` our token, `ARGV[2]` the other, `ARGV[3]` its time to live in milliseconds.
/// Answers 1 if the key was ours, 2 if there was none, and 0 if it is another's.
pub const HAND_OVER: Script = Script {
    source: include_str!("hand_over.lua"),
    sha1: "d53fcdc4920b3292a1438ea4e956afe10d1c199d",
};

/// Takes locks that have more to them than one key and a token, all of them or none: `KEYS` the
/// locks' keys and then their counters', `ARGV[1]` how many of them are locks', `ARGV[2]` the value
/// of the lock that is handed over or nothing, `ARGV[3]` our value, `ARGV[4]` its time to live in
/// milliseconds, `ARGV[5]` what a counter is at least, `ARGV[6]` the counters' time to live. Where
/// the value handed over is ours, which puts back the keys that a node has lost, no key's life is
/// shortened.
///
/// Answers two numbers: 1 if all keys held the value that is handed over, 2 if some of them did not
/// exist, and 0 if one is another's; and, if there are counters, what all of them are now: one more
/// than the largest was. A counter is decimal digits and nothing else, whatever else Lua would read
/// as a number. One that is none, or has no room above it, is an error, and nothing is written
/// then. The error does not quote the key: that may have more bytes than a line of RESP.
pub const CLAIM: Script =
    Script { source: include_str!("claim.lua"), sha1: "f88021fd5c0e596b0a93e67846ec4002af8970a8" };

/// Raises counters to a number, if the locks still hold our value: `KEYS` and `ARGV[1]` as for
/// [`CLAIM`], `ARGV[2]` our value, `ARGV[3]` the number, `ARGV[4]` the counters' time to live in
/// milliseconds. Answers 1 if that was done, and 0 if a lock is not ours or a counter is above the
/// number: then it may have been at the number before, for somebody else. A counter that is no
/// number is an error.
pub const FENCE: Script =
    Script { source: include_str!("fence.lua"), sha1: "e188c953c6769a193555699cc012155ba33bf81a" };

/// As [`RELEASE`], for several keys. Answers 1 if it deleted all of them.
pub const RELEASE_ALL: Script = Script {
    source: include_str!("release_all.lua"),
    sha1: "be28527ab021bba3433bb47780765aea97e57207",
};

/// As [`EXTEND`], for several keys: all of them live on, if all are ours.
pub const EXTEND_ALL: Script = Script {
    source: include_str!("extend_all.lua"),
    sha1: "ea4c397fec1efcb7205028635622bc2cbaebd34f",
};

/// Looks at a lock's key `KEYS[1]`. Answers its value, and how many milliseconds it has to live. Of
/// a value that is longer than any of ours it answers the beginning, and of what is no string an
/// empty one: whatever is there, it keeps the lock from being had.
pub const INSPECT: Script = Script {
    source: include_str!("inspect.lua"),
    sha1: "7a55d236ccf53f026179ef7c84a921c99fd11b2e",
};

/// Every script of this library.
pub const ALL: [Script; 8] =
    [RELEASE, EXTEND, HAND_OVER, CLAIM, FENCE, RELEASE_ALL, EXTEND_ALL, INSPECT];

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
