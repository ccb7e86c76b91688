//! The Lua scripts that run on the nodes, where compare and change must be one step.
//!
//! A node keeps a script under the SHA-1 of its source once it has seen it, so a request names the
//! script by that (`EVALSHA`) and sends the source (`EVAL`) only to a node that has not run it on
//! this connection, or answers that it does not know it. The digests are written down here and
//! checked against the sources by a test.

/// A script and the name a node knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Script {
    /// The Lua source, byte for byte as it is sent.
    pub source: &'static str,
    /// The SHA-1 of the source, in lower-case hexadecimal.
    pub sha1: &'static str,
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

/// Every script of this library.
pub const ALL: [Script; 3] = [RELEASE, EXTEND, HAND_OVER];

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
