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

use redlatch_protocol::node::{NodeError, NodeStatus, Role};

pub const QUESTION: &[u8] = b"srvr";

/// The most bytes of an answer that are read.
pub const ANSWER_MAX: usize = 16 * 1024;

/// The most characters of a version that are kept.
const VERSION_MAX: usize = 64;

const NO_MAJORITY: &str = "the server has no majority, and serves no client";

/// Adds what the answer says to the status of its server, or why it says nothing. It may leave
/// anything out.
pub fn add(answer: &[u8], status: &mut NodeStatus) {
    let answer = String::from_utf8_lossy(answer);
    if answer.contains("is not executed because it is not in the whitelist") {
        // It serves clients, as far as is known.
        status.is_connected = true;
        let error = refused("srvr is not in the server's 4lw.commands.whitelist");
        status.last_error = Some(error);
        return;
    }
    if answer.contains("not currently serving requests") {
        status.last_error = Some(refused(NO_MAJORITY));
        return;
    }
    let version = value(&answer, "Zookeeper version").and_then(version);
    let zxid = value(&answer, "Zxid").and_then(hexadecimal);
    let mode = value(&answer, "Mode").unwrap_or_default();
    let role = match mode {
        "standalone" => Some(Role::Standalone),
        "leader" => Some(Role::Leader),
        "follower" => Some(Role::Follower),
        "observer" => Some(Role::Observer),
        _ => None,
    };
    // It has no majority, and serves clients that only read.
    let is_read_only = mode == "read-only";
    if version.is_none() && zxid.is_none() && role.is_none() && !is_read_only {
        let text = "not the answer of a ZooKeeper server to srvr".to_owned();
        status.last_error = Some(NodeError::UnexpectedReply(text));
        return;
    }
    status.server = Some("zookeeper".to_owned());
    status.version = version;
    status.zxid = zxid;
    status.role = role;
    status.is_connected = !is_read_only;
    if is_read_only {
        status.last_error = Some(refused(NO_MAJORITY));
    }
}

fn refused(text: &str) -> NodeError {
    NodeError::Refused {
        text: text.to_owned(),
        is_permanent: false,
    }
}

/// What the first line with this name says.
fn value<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let mut values = answer.lines().filter_map(|line| line.split_once(": "));
    let (_, value) = values.find(|(found, _)| *found == name)?;
    Some(value.trim())
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Such as `3.8.0` of `3.8.0-${mvngit.commit.id}, built on …`. What follows the numbers is the
/// commit.
fn version(text: &str) -> Option<String> {
    let numbers = text.chars().take_while(|c| c.is_ascii_digit() || *c == '.');
    let version: String = numbers.take(VERSION_MAX).collect();
    (!version.is_empty()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 \
        UTC\nLatency min/avg/max: 0/0.8134/15\nReceived: 3040\nSent: 3040\nConnections: 1\n\
        Outstanding: 0\nZxid: 0x7ef\nMode: standalone\nNode count: 6\n";

    fn status_of(answer: &[u8]) -> NodeStatus {
        let mut status = NodeStatus::unknown(&"zk://a:2181".into());
        add(answer, &mut status);
        status
    }

    fn assert_says(
        status: &NodeStatus,
        version: Option<&str>,
        role: Option<Role>,
        zxid: Option<u64>,
    ) {
        assert_eq!(status.server.as_deref(), Some("zookeeper"));
        let said = (status.version.as_deref(), status.role, status.zxid);
        assert_eq!(said, (version, role, zxid));
    }

    #[test]
    fn an_answer_has_version_mode_and_zxid() {
        let status = status_of(ANSWER.as_bytes());
        assert_says(&status, Some("3.8.0"), Some(Role::Standalone), Some(0x7ef));
        for (word, role) in [
            ("leader", Some(Role::Leader)),
            ("follower", Some(Role::Follower)),
            ("observer", Some(Role::Observer)),
            ("read-only", None),
            ("captain", None),
        ] {
            let answer = ANSWER
                .replace("standalone", word)
                .replace("0x7ef", "0xffffffff00000001");
            let status = status_of(answer.as_bytes());
            assert_says(&status, Some("3.8.0"), role, Some(0xffff_ffff_0000_0001));
            let is_read_only = word == "read-only";
            let seen = (status.is_connected, status.last_error.is_some());
            assert_eq!(seen, (!is_read_only, is_read_only), "{word}");
        }
        assert!(!status_of(b"Mode: read-only\n").is_connected);
        assert_says(&status_of(b"Mode: read-only\n"), None, None, None);
    }

    #[test]
    fn a_part_of_an_answer_says_what_is_in_it() {
        for end in 0..ANSWER.len() {
            let part = status_of(&ANSWER.as_bytes()[..end]);
            assert!(part.last_error.is_some() || part.version.is_some(), "{end}");
        }
        let status = status_of(b"Zookeeper version: \x1b[2J\nZxid: 0x1\nMode: \n");
        assert_says(&status, None, None, Some(1));
    }

    #[test]
    fn a_server_may_say_nothing() {
        let forbidden = "refused: srvr is not in the server's 4lw.commands.whitelist";
        let not_serving = "refused: the server has no majority, and serves no client";
        let other = "unexpected reply: not the answer of a ZooKeeper server to srvr";
        for (answer, expected) in [
            (
                &b"srvr is not executed because it is not in the whitelist.\n"[..],
                forbidden,
            ),
            (
                b"This ZooKeeper instance is not currently serving requests\n",
                not_serving,
            ),
            (b"", other),
            (b"-ERR unknown command\r\n", other),
            (b"Zxid: 7\nMode: 0x1\n", other),
            (b"\xff\0", other),
        ] {
            let status = status_of(answer);
            assert_eq!(status.last_error.unwrap().to_string(), expected);
            assert_eq!(
                (status.is_connected, status.server),
                (expected == forbidden, None)
            );
        }
    }
}
