//! Random scripts about shares of a lock: readers and permits, with a few values and waiters.

use super::{Generator, Words};
use redlatch_protocol::node::script::{self, Script};

/// Those about shares, the frequent ones several times, and others that meet shares.
const SCRIPTS: [Script; 14] = [
    script::SHARE,
    script::SHARE,
    script::SHARE,
    script::SHARE,
    script::SHARE,
    script::KEEP_SHARED,
    script::KEEP_SHARED,
    script::RELEASE_SHARED,
    script::RELEASE_SHARED,
    script::RELEASE_READER,
    script::RELEASE_READER,
    script::REMOVE,
    script::FENCE,
    script::INSPECT,
];

impl Generator {
    /// A command about one lock, most often about its shares.
    pub(crate) fn sharing_command(&mut self) -> (Words, bool) {
        let mut wait = false;
        let words = match self.below(40) {
            0..=11 => self.queue(&mut wait),
            12..=31 => self.share(&mut wait),
            32..=35 => self.beside_a_lock(),
            36 => self.claim(&mut wait),
            37 => {
                let lost = ["k1", "k1:redlatch:permits", "k1:redlatch:holders"];
                vec![b"DEL".to_vec(), self.pick(&lost)]
            }
            38 => {
                let value = self.pick(&[
                    "token-1",
                    "redlatch:shared",
                    "redlatch:reserved:w2------------------0",
                ]);
                let life = self.claimed_for(&mut wait);
                vec![b"SET".to_vec(), b"k1".to_vec(), value, b"PX".to_vec(), life]
            }
            _ => self.script(&mut wait),
        };
        (words, wait)
    }

    /// Commands that show what is at the keys of the lock `k1`.
    pub(crate) fn sharing_questions() -> Vec<Words> {
        let mut lines = vec![format!("EVAL {{inspect}} 1 k1 5"), "PTTL k1".to_owned()];
        lines.push("GET k1:redlatch:floor".to_owned());
        for name in ["holders", "permits", "queue", "called", "floor"] {
            lines.extend(["PTTL", "TYPE"].map(|verb| format!("{verb} k1:redlatch:{name}")));
        }
        for waiter in ["w1---", "w2---", "w3---", "w3\\r\\n4"] {
            lines.push(format!("PTTL k1:redlatch:lease:{waiter}---------------"));
        }
        lines
            .iter()
            .map(|line| line.split(' ').map(super::super::rig::filled_in).collect())
            .collect()
    }

    /// One of the scripts about shares, or another that meets shares.
    pub(super) fn share(&mut self, wait: &mut bool) -> Words {
        let script = SCRIPTS[self.below(SCRIPTS.len() as u64) as usize];
        let mut words = self.call(script);
        let key = self.pick(&["k1", "k1", "k1", "k2"]);
        let is_counted = match script {
            known if known == script::SHARE => self.below(3) == 0,
            known => known == script::FENCE,
        };
        words.extend([
            if is_counted {
                b"2".to_vec()
            } else {
                b"1".to_vec()
            },
            key,
        ]);
        if is_counted {
            words.push(self.pick(&["f1", "f2"]));
        }
        let value = self.shared_value();
        match script {
            known if known == script::SHARE => {
                let life = self.claimed_for(wait);
                let permits = self.permits();
                let first = self.pick(&["0", "0", "1", "5"]);
                let waiter = self.waiter_or_none();
                let least = self.pick(&["1", "7", "1000000"]);
                words.extend([value, life, permits, first, waiter, least]);
                words.push(self.long_ttl(false));
            }
            known if known == script::RELEASE_SHARED => {
                let permits = self.permits();
                let waiter = self.waiter_or_none();
                let is_kept = self.below(4) == 0;
                let keep_for = if is_kept {
                    self.claimed_for(wait)
                } else {
                    Vec::new()
                };
                words.extend([value, permits, waiter, keep_for]);
            }
            known if known == script::RELEASE_READER => words.push(value),
            known if known == script::REMOVE => {
                words.extend([self.member(), self.member()]);
            }
            known if known == script::FENCE => {
                let number = self.pick(&["1", "7", "1000000"]);
                words.extend([b"1".to_vec(), self.member(), number, self.long_ttl(false)]);
            }
            known if known == script::INSPECT => {}
            _ => {
                let slot = self.slot();
                let mode = self.pick(&["", "restore"]);
                words.extend([slot, value, self.claimed_for(wait), mode]);
            }
        }
        words.push(self.proof());
        words
    }

    fn permits(&mut self) -> Vec<u8> {
        self.pick(&["0", "0", "1", "2", "3", "3"])
    }

    fn slot(&mut self) -> Vec<u8> {
        self.pick(&["", "", "0", "1", "2"])
    }

    fn shared_value(&mut self) -> Vec<u8> {
        self.pick(&["token-1", "token-2", "token-3", "token:4\r\n", ""])
    }

    fn member(&mut self) -> Vec<u8> {
        [self.slot(), b":".to_vec(), self.shared_value()].concat()
    }

    /// The entry of a waiter, which says what it waits for.
    pub(super) fn lease(&mut self) -> Vec<u8> {
        self.pick(&[
            "12 50000 60000  owner",
            "12s0 50000 60000  owner",
            "12s0 50000 60000  owner",
            "12s0 50000 60000 nobody owner",
            "12s1 50000 60000  owner",
            "12s2 50000 60000  owner",
            "12s3 50000 60000  owner",
            "12s3 50000 60000 nobody owner",
            "12s3",
            "",
        ])
    }
}
