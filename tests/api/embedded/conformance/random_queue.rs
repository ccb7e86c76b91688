//! Random scripts of the queue, with a few waiters, and commands on the keys beside a lock's key.

use super::{Generator, Words};
use redlatch_protocol::node::script;

impl Generator {
    /// One of the scripts of the queue. The times to live are long, or end during the wait.
    pub(super) fn queue(&mut self, wait: &mut bool) -> Words {
        let scripts = [
            script::QUEUE,
            script::QUEUE,
            script::QUEUE,
            script::QUEUE,
            script::CLAIM,
            script::CLAIM,
            script::CLAIM,
            script::GIVE,
            script::KEEP,
            script::LISTEN,
        ];
        let script = scripts[self.below(scripts.len() as u64) as usize];
        let mut words = self.call(script);
        // Few keys, so that several waiters meet.
        words.extend([b"1".to_vec(), self.pick(&["k1", "k1", "k1", "k2"])]);
        let waiter = self.waiter();
        match script {
            known if known == script::QUEUE => {
                let number = self.pick(&["0", "0", "0", "0", "1", "2", "5", "1099511627776"]);
                let withdrawn = self.value();
                let lease = self.lease();
                words.extend([waiter, number, withdrawn, lease, self.claimed_for(wait)]);
            }
            known if known == script::CLAIM => {
                let reserved = [b"redlatch:reserved:".as_slice(), &waiter].concat();
                words.extend([
                    b"1".to_vec(),
                    reserved,
                    self.value(),
                    self.claimed_for(wait),
                ]);
                words.extend([b"0".to_vec(), b"0".to_vec(), waiter]);
            }
            known if known == script::GIVE => {
                words.extend([self.value(), waiter, self.keep_for(wait)]);
            }
            known if known == script::KEEP => {
                words.extend([self.value(), self.claimed_for(wait), b"restore".to_vec()]);
            }
            _ => {}
        }
        words.push(self.proof());
        words
    }

    /// A command on a queue or an entry.
    pub(super) fn beside_a_lock(&mut self) -> Words {
        let waiter = self.waiter();
        let suffix = match self.below(10) {
            0 => b"queue".to_vec(),
            8 => b"holders".to_vec(),
            9 => b"floor".to_vec(),
            7 => b"called".to_vec(),
            _ => [b"lease:".to_vec(), waiter].concat(),
        };
        let key = [
            self.pick(&["k1", "k1", "k2"]),
            b":redlatch:".to_vec(),
            suffix,
        ]
        .concat();
        // A key of another type makes most scripts fail, so it is removed more often than made.
        let command = self.pick(&[
            "TYPE", "EXISTS", "PTTL", "GET", "STRLEN", "DEL", "DEL", "DEL", "DEL", "SET", "LPUSH",
        ]);
        let is_written = command == b"SET" || command == b"LPUSH";
        let mut words = vec![command, key];
        words.extend(is_written.then(|| b"foreign".to_vec()));
        words
    }

    pub(super) fn waiter(&mut self) -> Vec<u8> {
        let mut waiter = self.pick(&["w1", "w2", "w3", "w3\r\n4"]);
        waiter.resize(20, b'-');
        waiter
    }

    pub(super) fn waiter_or_none(&mut self) -> Vec<u8> {
        if self.below(2) == 0 {
            Vec::new()
        } else {
            self.waiter()
        }
    }
}
