//! What a server says about itself: its answer to the four letters `srvr`.
//!
//! ```text
//! Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC
//! Latency min/avg/max: 0/0.8134/15
//! …
//! Zxid: 0x7ef
//! Mode: standalone
//! Node count: 6
//! ```
//!
//! The words are sent on a connection of their own, and the server closes it behind its answer. It
//! answers without credentials, unless `4lw.commands.whitelist` forbids it.

use std::fmt;

pub const QUESTION: &[u8] = b"srvr";

/// The most bytes of an answer that are read.
pub const ANSWER_MAX: usize = 16 * 1024;

/// The most characters of a version that are kept.
const VERSION_MAX: usize = 64;

/// What a server says about itself. It may leave anything out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its version, without the date.
    pub version: Option<String>,
    /// What it does in its ensemble.
    pub mode: Option<Mode>,
    /// The last transaction that it knows.
    pub zxid: Option<u64>,
}

/// What a server does in its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It has no ensemble.
    Standalone,
    /// It orders the transactions.
    Leader,
    /// It votes on them.
    Follower,
    /// It does not vote.
    Observer,
    /// It has no majority, and serves clients that only read.
    ReadOnly,
}

/// Why an answer says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStatus {
    /// The server's configuration forbids the question. It serves clients, as far as is known.
    Forbidden,
    /// The server has no majority, and serves no client.
    NotServing,
    /// This is no answer of a server of ZooKeeper.
    Other,
}

impl fmt::Display for NoStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forbidden => "srvr is not in the server's 4lw.commands.whitelist",
            Self::NotServing => "the server has no majority, and serves no client",
            Self::Other => "not the answer of a ZooKeeper server to srvr",
        })
    }
}

impl std::error::Error for NoStatus {}

impl ServerStatus {
    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// It says nothing about the server.
    pub fn read(answer: &[u8]) -> Result<Self, NoStatus> {
        let answer = String::from_utf8_lossy(answer);
        if answer.contains("is not executed because it is not in the whitelist") {
            return Err(NoStatus::Forbidden);
        }
        if answer.contains("not currently serving requests") {
            return Err(NoStatus::NotServing);
        }
        let value = |name: &str| {
            let values = answer.lines().filter_map(|line| line.split_once(": "));
            values.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value.trim())
        };
        let status = Self {
            version: value("Zookeeper version").and_then(version),
            mode: value("Mode").and_then(mode),
            zxid: value("Zxid")
                .and_then(|zxid| u64::from_str_radix(zxid.strip_prefix("0x")?, 16).ok()),
        };
        if status == Self::default() { Err(NoStatus::Other) } else { Ok(status) }
    }
}

/// Such as `3.8.0` of `3.8.0-${mvngit.commit.id}, built on …`. What follows the numbers is the
/// commit.
fn version(text: &str) -> Option<String> {
    let is_part = |c: &char| c.is_ascii_digit() || *c == '.';
    let version: String = text.chars().take_while(is_part).take(VERSION_MAX).collect();
    (!version.is_empty()).then_some(version)
}

fn mode(text: &str) -> Option<Mode> {
    Some(match text {
        "standalone" => Mode::Standalone,
        "leader" => Mode::Leader,
        "follower" => Mode::Follower,
        "observer" => Mode::Observer,
        "read-only" => Mode::ReadOnly,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 \
        UTC\nLatency min/avg/max: 0/0.8134/15\nReceived: 3040\nSent: 3040\nConnections: 1\n\
        Outstanding: 0\nZxid: 0x7ef\nMode: standalone\nNode count: 6\n";

    fn status(version: Option<&str>, mode: Option<Mode>, zxid: Option<u64>) -> ServerStatus {
        ServerStatus { version: version.map(str::to_owned), mode, zxid }
    }

    #[test]
    fn an_answer_has_version_mode_and_zxid() {
        let expected = status(Some("3.8.0"), Some(Mode::Standalone), Some(0x7ef));
        assert_eq!(ServerStatus::read(ANSWER.as_bytes()), Ok(expected));
        for (word, mode) in [
            ("leader", Some(Mode::Leader)),
            ("follower", Some(Mode::Follower)),
            ("observer", Some(Mode::Observer)),
            ("read-only", Some(Mode::ReadOnly)),
            ("captain", None),
        ] {
            let answer = ANSWER.replace("standalone", word).replace("0x7ef", "0xffffffff00000001");
            let expected = status(Some("3.8.0"), mode, Some(0xffff_ffff_0000_0001));
            assert_eq!(ServerStatus::read(answer.as_bytes()), Ok(expected));
        }
    }

    #[test]
    fn a_part_of_an_answer_says_what_is_in_it() {
        for end in 0..ANSWER.len() {
            let part = ServerStatus::read(&ANSWER.as_bytes()[..end]);
            assert!(part.is_err() || part.unwrap().version.is_some(), "{end}");
        }
        let expected = Ok(status(None, None, Some(1)));
        assert_eq!(
            ServerStatus::read(b"Zookeeper version: \x1b[2J\nZxid: 0x1\nMode: \n"),
            expected
        );
    }

    #[test]
    fn a_server_may_say_nothing() {
        for (answer, expected) in [
            ("srvr is not executed because it is not in the whitelist.\n", NoStatus::Forbidden),
            ("This ZooKeeper instance is not currently serving requests\n", NoStatus::NotServing),
            ("", NoStatus::Other),
            ("-ERR unknown command\r\n", NoStatus::Other),
            ("Zxid: 7\nMode: 0x1\n", NoStatus::Other),
        ] {
            assert_eq!(ServerStatus::read(answer.as_bytes()), Err(expected), "{answer}");
        }
        assert_eq!(ServerStatus::read(b"\xff\0"), Err(NoStatus::Other));
    }
}
