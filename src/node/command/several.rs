//! Requests about locks that have counters or several keys.

use super::shares::member_of;
use super::{decimal, script_of_removal, value_of};
use crate::engine::{Acquisition, LockId, Removal, Token, Ttl};
use crate::node::script;
use crate::resp::encode_words;

/// The suffix that turns a lock's key into its counter's key. No lock's key may end with it.
pub const COUNTER_SUFFIX: &[u8] = b":redlatch:fence";

/// A request to run a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// The command, and the script's digest or source.
    pub(super) name: (&'static [u8], &'static [u8]),
    /// The number that the script's answer must begin with.
    pub(super) proof: &'a [u8],
}

impl Call<'_> {
    /// Takes a lock whose keys do not exist, or hold the value `before`.
    /// In a waiter's turn, that value is the waiter's reservation.
    pub(super) fn claim(
        self,
        new: &Acquisition,
        (before, waiter): (&[u8], Option<&Token>),
        out: &mut Vec<u8>,
    ) {
        let Acquisition { lock, ttl, fence } = new;
        let [mut locks, mut millis, mut first, mut counters_ttl] = [[0; 20]; 4];
        let locks = decimal(lock.keys().count() as u64, &mut locks);
        let ttl = decimal(ttl.as_millis(), &mut millis);
        let first = decimal(*fence, &mut first);
        let counters_ttl = decimal(ttl_of_counters(lock), &mut counters_ttl);
        let (value, waiter) = (value_of(lock), name_of(waiter));
        let arguments = [locks, before, &value, ttl, first, counters_ttl, waiter];
        self.run(lock, &counters(lock), &arguments, out);
    }

    /// Raises the counters of a lock.
    pub(super) fn fence(self, lock: &LockId, fence: u64, out: &mut Vec<u8>) {
        let [mut locks, mut first, mut counters_ttl] = [[0; 20]; 3];
        let locks = decimal(lock.keys().count() as u64, &mut locks);
        let first = decimal(fence, &mut first);
        let counters_ttl = decimal(ttl_of_counters(lock), &mut counters_ttl);
        self.run(lock, &counters(lock), &[locks, &member_of(lock), first, counters_ttl], out);
    }

    /// Extends a lock, or sets it again where a node lost it.
    pub(super) fn keep(self, lock: &LockId, ttl: Ttl, mode: &[u8], out: &mut Vec<u8>) {
        let mut millis = [0; 20];
        let ttl = decimal(ttl.as_millis(), &mut millis);
        self.run(lock, &[], &[&value_of(lock), ttl, mode], out);
    }

    /// Gives a lock up.
    pub(super) fn give(self, removal: &Removal, out: &mut Vec<u8>) {
        let Removal { lock, linger, waiter, .. } = removal;
        if script_of_removal(removal) == script::RELEASE {
            return self.run(lock, &[], &[&value_of(lock)], out);
        }
        let mut digits = [0; 20];
        let linger = linger.map_or(&[][..], |linger| decimal(linger.as_millis(), &mut digits));
        self.run(lock, &[], &[&value_of(lock), name_of(waiter.as_ref()), linger], out);
    }

    /// Runs the script with the keys of a lock, the keys of its counters, and these arguments.
    pub(super) fn run(
        self,
        lock: &LockId,
        counters: &[Vec<u8>],
        arguments: &[&[u8]],
        out: &mut Vec<u8>,
    ) {
        let mut all = [0; 20];
        let count = lock.keys().count() + counters.len();
        let all = decimal(count as u64, &mut all);
        let (verb, name) = self.name;
        let words = [verb, name, all].into_iter().chain(lock.keys());
        let words = words.chain(counters.iter().map(Vec::as_slice));
        let words = words.chain(arguments.iter().copied()).chain([self.proof]);
        encode_words(out, 4 + count + arguments.len(), words);
    }
}

/// The name of a waiter in a script's arguments.
fn name_of(waiter: Option<&Token>) -> &[u8] {
    waiter.map_or(&[], |waiter| waiter.as_bytes())
}

/// The counters' keys, if the lock is fenced.
pub(super) fn counters(lock: &LockId) -> Vec<Vec<u8>> {
    let keys = lock.keys().filter(|_| lock.counters_ttl().is_some());
    keys.map(|key| [key, COUNTER_SUFFIX].concat()).collect()
}

/// The ttl of the counters, in milliseconds.
fn ttl_of_counters(lock: &LockId) -> u64 {
    lock.counters_ttl().map_or(0, Ttl::as_millis)
}
