//! Data under a lock's key that keeps everybody from the lock and is none.

use super::{NotALock, OtherProgram};
use crate::engine::{Token, quorum};
use redlatch_protocol::inspect::KeySnapshot;

/// The longest value of a lock of this library: a token, and an owner's label.
const VALUE_MAX: usize = Token::LEN + 256;

/// Data that is not a lock, on so many nodes that no majority can grant it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OtherData {
    /// Of the first of these nodes.
    pub(crate) reason: NotALock,
    /// Does it stay for ever, on so many nodes, unless a person removes it?
    pub(crate) is_lasting: bool,
    /// The nodes that have it.
    pub(crate) nodes: Vec<usize>,
}

impl OtherData {
    /// `None` also if too few nodes have answered to know.
    pub(crate) fn of(snapshots: &[Option<KeySnapshot>]) -> Option<Self> {
        let mut nodes = Vec::new();
        let mut lasting = 0;
        let mut reason = None;
        for (index, snapshot) in snapshots.iter().enumerate() {
            let Some(snapshot) = snapshot else { continue };
            if let Some(found) = NotALock::of(snapshot) {
                reason.get_or_insert(found);
                nodes.push(index);
                lasting += usize::from(lasts(snapshot));
            }
        }
        // So many may have it that the others can still grant the lock.
        let most = snapshots.len() - quorum(snapshots.len());
        if nodes.len() <= most {
            return None;
        }
        Some(Self {
            reason: reason?,
            is_lasting: lasting > most,
            nodes,
        })
    }
}

/// Has it no ttl, and is it of no program that releases it? Some lock by a string without a ttl.
fn lasts(snapshot: &KeySnapshot) -> bool {
    let value = snapshot.value.as_deref().unwrap_or_default();
    let may_be_lock = match OtherProgram::of(value) {
        Some(program) => program != OtherProgram::Unknown,
        None => value.len() <= VALUE_MAX,
    };
    let is_string = NotALock::of(snapshot) == Some(NotALock::NoTtl);
    snapshot.left == -1 && !(is_string && may_be_lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value and its ttl: `?` no answer, `.` no key, `*` a list, `=` our own token, `e` nothing,
    /// `p` the value of redis-py, `x` any text; behind it `-` for no ttl, or `5`.
    fn snapshot(text: &str) -> Option<KeySnapshot> {
        let value: Vec<u8> = match &text[..1] {
            "?" => return None,
            "." => {
                return Some(KeySnapshot {
                    left: -2,
                    ..KeySnapshot::default()
                });
            }
            "*" | "e" => Vec::new(),
            "=" => vec![0x80; Token::LEN + 3],
            "b" => vec![0x80; VALUE_MAX + 1],
            "p" => b"d0f7eeeae93a11f1a51e02fc00000001".to_vec(),
            _ => b"data".to_vec(),
        };
        let left = if text.ends_with('-') { -1 } else { 5 };
        let is_string = !text.starts_with('*');
        Some(KeySnapshot {
            value: Some(value),
            is_string,
            left,
            ..KeySnapshot::default()
        })
    }

    #[test]
    fn data_that_keeps_a_majority_from_the_lock_is_found_and_whether_it_ever_ends() {
        use NotALock::{Empty, NoTtl, NotAString};
        let table = [
            ("x-", Some((NoTtl, true))),
            ("x5", None),
            ("p-", Some((NoTtl, false))),
            ("=-", Some((NoTtl, false))),
            ("b-", Some((NoTtl, true))),
            ("*-", Some((NotAString, true))),
            ("*5", Some((NotAString, false))),
            ("e-", Some((Empty, true))),
            ("e5", Some((Empty, false))),
            ("x- x- .", Some((NoTtl, true))),
            ("x- . .", None),
            ("x- =5 =5", None),
            ("x- ? ?", None),
            ("? x- *-", Some((NoTtl, true))),
            ("x- *5 =5", Some((NoTtl, false))),
            ("x- x- . .", Some((NoTtl, true))),
            ("x- x- . . .", None),
            ("x- p- *- . .", Some((NoTtl, false))),
            (". . .", None),
            ("? ? ?", None),
        ];
        for (nodes, expected) in table {
            let snapshots: Vec<_> = nodes.split(' ').map(snapshot).collect();
            let found = OtherData::of(&snapshots);
            let found = found.map(|found| (found.reason, found.is_lasting));
            assert_eq!(found, expected, "{nodes}");
        }
    }
}
