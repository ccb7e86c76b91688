//! Random scripts of the queue, with a few waiters, and commands on the keys beside a lock's key.

use super::{Generator, Words};
use redlatch::internal::node::script;

impl Generator {
    /// One of the scripts of the queue. The times to live are long, or end during the wait.
    pub(super) fn queue(&mut self, wait: &mut bool) -> Words {
        let scripts = [
            script::QUEUE,
            script::QUEUE,
            script::QUEUE,
            script::TURN,
            script::LEAVE_QUEUE,
            script::RESTORE,
            script::LISTEN,
        ];
        let kind = self.below(7) as usize;
        let mut words = self.call(scripts[kind]);
        words.extend([b"1".to_vec(), self.key()]);
        let waiter = self.waiter();
        match kind {
            0..=2 => {
                let number = self.pick(&["0", "0", "0", "0", "1", "2", "5", "1099511627776"]);
                let (withdrawn, lease) = (self.value(), self.pick(&["lease-1", "lease-2", ""]));
                let (lives_for, reserved_for) = (self.claimed_for(wait), self.claimed_for(wait));
                words.extend([waiter, number, withdrawn, lease, lives_for, reserved_for]);
            }
            3 => words.extend([waiter, self.value(), self.claimed_for(wait)]),
            4 => {
                // The bell of a waiter that leaves exists for a millisecond.
                *wait = true;
                words.extend([self.value(), waiter, self.claimed_for(wait)]);
            }
            5 => words.extend([self.value(), self.claimed_for(wait)]),
            _ => {}
        }
        words.push(self.proof());
        words
    }

    /// A command on a queue, a lease or a bell.
    pub(super) fn beside_a_lock(&mut self) -> Words {
        let waiter = self.waiter();
        let suffix = match self.below(5) {
            0 | 1 => b"queue".to_vec(),
            2 | 3 => [b"lease:".to_vec(), waiter].concat(),
            _ => [b"bell:".to_vec(), waiter].concat(),
        };
        let key = [self.key(), b":redlatch:".to_vec(), suffix].concat();
        let command =
            self.pick(&["TYPE", "EXISTS", "PTTL", "GET", "STRLEN", "DEL", "SET", "LPUSH"]);
        let is_written = command == b"SET" || command == b"LPUSH";
        let mut words = vec![command, key];
        words.extend(is_written.then(|| b"foreign".to_vec()));
        words
    }

    pub(super) fn waiter(&mut self) -> Vec<u8> {
        self.pick(&["w1", "w2", "w3", "w3\r\n4"])
    }

    pub(super) fn waiter_or_none(&mut self) -> Vec<u8> {
        if self.below(2) == 0 { Vec::new() } else { self.waiter() }
    }
}
