//! Keys that may be locks are listed.

use crate::engine::{CustomCommand, NoVote, RunScript, Said, Script, Tally, Vote};
use crate::node::script::{OF_SHARES, REMOVE, SCAN, elements_of_parts, list, vote};
use crate::resp::Reply;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

/// Lists some of the keys that match a pattern. What is said is a [`KeyPage`]. Sent to one node at
/// a time, since each continues where it stopped.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The pattern of the keys, as of Redis's `KEYS`.
    pub pattern: Arc<[u8]>,
    /// Where the node continues: what it answered to the request before, or 0 to begin.
    pub cursor: u64,
    /// About how many keys the node looks at.
    pub count: u32,
    /// Are registers listed, by the keys of their promises, and not locks?
    pub registers: bool,
    /// What stands before each key on the node, and is not a part of its name. Empty at first.
    pub tag: Arc<[u8]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage {
    /// Where the node continues. 0 if there are no more.
    pub next: u64,
    /// The keys. `None` if they are more than fit in a reply: fewer must be asked for at a time.
    pub keys: Option<Vec<Vec<u8>>>,
}

impl CustomCommand for Listing {
    fn key(&self) -> &Arc<[u8]> {
        &self.pattern
    }

    fn script(&self) -> Script {
        SCAN
    }

    fn for_group(&self, tag: &Arc<[u8]>, _: Duration) -> Option<Arc<dyn CustomCommand>> {
        Some(Arc::new(Self {
            tag: Arc::clone(tag),
            ..self.clone()
        }))
    }

    fn call(&self, run: &mut RunScript<'_>) {
        let cursor = self.cursor.to_string();
        let count = self.count.to_string();
        let pattern = [&self.tag[..], &self.pattern].concat();
        let kind: &[u8] = if self.registers {
            b"registers"
        } else {
            b"locks"
        };
        run(&[], &[cursor.as_bytes(), &pattern, count.as_bytes(), kind]);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        page(number, reply, &self.tag).map(|page| Ok((Vote::Granted, Said::new(page))))
    }

    fn waits_for_more(&self, _: &[Option<Said>], _: &Tally, _: usize) -> bool {
        true
    }
}

fn page(number: i64, reply: &Reply<'_>, tag: &[u8]) -> Option<KeyPage> {
    let [Some(Reply::Bulk(next)), keys, None] = list(number, reply)? else {
        return None;
    };
    let is_number = next.iter().all(u8::is_ascii_digit);
    let next = std::str::from_utf8(next)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()?;
    let parts = match keys? {
        Reply::Null => return Some(KeyPage { next, keys: None }),
        Reply::Array(parts) => elements_of_parts(&parts)?,
        _ => return None,
    };
    let mut keys = Vec::with_capacity(parts.len());
    for part in parts {
        let Reply::Bulk(key) = part else { return None };
        keys.push(key.strip_prefix(tag)?.to_vec());
    }
    let keys = Some(keys);
    Some(KeyPage { next, keys })
}

// A lock is removed by force.

/// Removes the key of a lock, whatever token it holds, if its value is one of those that were seen.
/// What is said is whether it was.
#[derive(Clone, Debug)]
pub struct ForcedRemoval {
    pub key: Arc<[u8]>,
    /// The values of the key that were read before.
    pub seen: Arc<[Vec<u8>]>,
}

impl CustomCommand for ForcedRemoval {
    fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    fn script(&self) -> Script {
        REMOVE
    }

    fn call(&self, run: &mut RunScript<'_>) {
        let seen: Vec<_> = self.seen.iter().map(Vec::as_slice).collect();
        let derived: Vec<_> = OF_SHARES
            .iter()
            .map(|suffix| [&self.key, *suffix].concat())
            .collect();
        let keys: Vec<_> = iter::once(&*self.key)
            .chain(derived.iter().map(Vec::as_slice))
            .collect();
        run(&keys, &seen);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        vote(number, reply).map(|vote| Ok((vote, Said::new(vote == Vote::Granted))))
    }

    /// The key holds something that is not a lock, so it does not hold what was seen.
    fn of_other_type(&self) -> Option<(Vote, Said)> {
        Some((Vote::Refused, Said::new(false)))
    }

    fn waits_for_more(&self, _: &[Option<Said>], _: &Tally, _: usize) -> bool {
        true
    }
}
