//! What a client knows of its own threads: which of them holds a lock, and how many wait for it.

use super::Core;
use crate::clock;
use crate::engine::Share;
use crate::inspect::{OwnHolder, OwnThreads};
use crate::wait_queue::Taker;
use std::sync::Arc;
use std::thread::{self, ThreadId};

/// A lock that a thread of this client holds.
pub(crate) struct OwnHold<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) holder: OwnHolder,
    /// Can no other thread give it up?
    pub(crate) is_bound: bool,
}

impl Core {
    /// Of the locks with these keys, one that a thread of this client holds, which such a request
    /// cannot have at the same time: one that `thread` has taken itself, if there is one.
    pub(crate) fn own_hold<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]>,
        share: Option<Share>,
        thread: Option<ThreadId>,
    ) -> Option<OwnHold<'a>> {
        let holds = keys.flat_map(|key| {
            let takers = self.holders(key, share, thread).into_iter();
            takers.map(move |taker| {
                let is_own = thread.is_some() && taker.thread == thread;
                let holder = if is_own {
                    OwnHolder::ThisThread
                } else {
                    OwnHolder::OtherThread
                };
                OwnHold {
                    key,
                    holder,
                    is_bound: taker.is_bound,
                }
            })
        });
        holds.max_by_key(|hold| (hold.holder, hold.is_bound))
    }

    fn holders(&self, key: &[u8], share: Option<Share>, thread: Option<ThreadId>) -> Vec<Taker> {
        let mut takers = self.guard_list.holders(key, share, thread);
        takers.extend(self.wait_queues.holder(key));
        takers
    }

    /// The threads that hold the lock with this key, or wait for it.
    pub(crate) fn own_threads(&self, key: &[u8]) -> OwnThreads {
        let this = Some(thread::current().id());
        let now = clock::now();
        let mut since = self.wait_queues.waiting_since(|name| name == key);
        since.extend(
            self.set_wait_queues
                .waiting_since(|name| has_key(name, key)),
        );
        since.extend(self.joint_shares.waiting_since(key));
        OwnThreads {
            holder: self
                .own_hold(std::iter::once(key), None, this)
                .map(|hold| hold.holder),
            waiting: since.len(),
            longest_wait: since.into_iter().min().map(|began| now.since(began)),
        }
    }
}

/// The name of a set of keys in the wait queues: no two sets have the same.
pub(crate) fn name_of_set(keys: impl Iterator<Item: AsRef<[u8]>>) -> Arc<[u8]> {
    let mut name = Vec::new();
    for key in keys {
        let key = key.as_ref();
        name.extend_from_slice(&key.len().to_le_bytes());
        name.extend_from_slice(key);
    }
    name.into()
}

/// Is this the name of a set with that key?
fn has_key(mut name: &[u8], key: &[u8]) -> bool {
    while let Some((length, rest)) = name.split_first_chunk() {
        let Some((first, others)) = rest.split_at_checked(usize::from_le_bytes(*length)) else {
            return false;
        };
        if first == key {
            return true;
        }
        name = others;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_set_tells_its_keys() {
        let key = |text: &str| Arc::from(text.as_bytes());
        let keys = [key("a"), key(""), key("long name"), key("a,b")];
        let name = name_of_set(keys.iter());
        assert!(keys.iter().all(|it| has_key(&name, it)));
        for other in ["b", "a,", "long", "name", "\u{1}"] {
            assert!(!has_key(&name, other.as_bytes()), "{other}");
        }
        assert!(!has_key(&name[..name.len() - 1], b"a,b") && !has_key(b"", b""));
    }
}
