//! Requests about the queue of a lock, and the names that the scripts give to its keys.

use crate::engine::{Listen, Token};
use crate::resp::encode_command;
use std::time::Duration;

/// The prefix of a reservation. The waiter's name follows, and for how many milliseconds the
/// reservation is kept for others after its time. No token begins like this: tokens are 20 random
/// bytes.
pub const RESERVED: &[u8] = b"redlatch:reserved:";

/// The prefix of the channel of a connection, on which nodes notify its waiters.
const CHANNEL: &str = "redlatch:";

/// Is this value of a lock's key a reservation, and no lock?
pub fn is_reservation(value: &[u8]) -> bool {
    let rest = value.strip_prefix(RESERVED).and_then(|rest| rest.get(Token::LEN..));
    rest.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

/// What a holder left at a node when it let the lock stay taken for a while: for how many
/// milliseconds after that while the key is kept for those who wait, and the lock's value.
pub fn read_left(value: &[u8]) -> Option<(u64, &[u8])> {
    let rest = value.strip_prefix(b"redlatch:left:")?;
    let (digits, value) = rest.split_at(rest.iter().position(|byte| *byte == b':')?);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, &value[1..]))
}

/// How the value of a lock's key begins that a node has reserved for this waiter.
pub(in crate::node) fn reservation(waiter: &Token) -> Vec<u8> {
    [RESERVED, waiter.as_bytes()].concat()
}

/// What a node tells about a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::node) enum Notification {
    /// It reserves the lock for the waiter, or has a share for it.
    Reserved,
    /// The waiter may be the first in this time: so long, the lock is reserved for another one.
    AskIn(Duration),
}

/// The waiter that a message on a channel is for, and what it says.
pub(in crate::node) fn read_notification(message: &[u8]) -> Option<(Token, Notification)> {
    let (name, words) = message.split_at_checked(Token::LEN)?;
    let notification = match words {
        b"r" => Notification::Reserved,
        [b'w', digits @ ..] => {
            let millis = std::str::from_utf8(digits).ok()?.parse().ok()?;
            Notification::AskIn(Duration::from_millis(millis))
        }
        _ => return None,
    };
    Some((Token::new(name.try_into().ok()?), notification))
}

/// Appends the command for a step without a script that has the server notify this connection.
pub(super) fn listen(step: Listen, out: &mut Vec<u8>) {
    match step {
        Listen::Subscribe(channel) => {
            encode_command(out, &[b"SUBSCRIBE", name_of_channel(channel).as_bytes()]);
        }
        Listen::Enable => encode_command(out, &[b"CLIENT", b"TRACKING", b"ON", b"OPTIN"]),
        Listen::OptIn => encode_command(out, &[b"CLIENT", b"CACHING", b"YES"]),
        Listen::Read(_) => unreachable!("it takes a script"),
    }
}

pub(in crate::node) fn name_of_channel(channel: u64) -> String {
    format!("{CHANNEL}{channel:016x}")
}
