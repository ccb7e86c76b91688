//! Random commands over a few keys.
//!
//! Two servers never get a command at the same instant, so no reply may depend on a millisecond. So
//! a time to live is either a few milliseconds, and the test waits until it has passed, or one of
//! many that differ by at least 1000 seconds, longer than any test takes.

#[path = "random_queue.rs"]
mod queue;
#[path = "random_shares.rs"]
mod shares;

use redlatch_protocol::node::script;

pub(crate) struct Generator {
    state: u64,
    long_ttls: u64,
}

type Words = Vec<Vec<u8>>;

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed,
            long_ttls: seed % 1_000_003,
        }
    }

    /// The next command, and whether to wait after it until a key has expired.
    pub(crate) fn command(&mut self) -> (Words, bool) {
        let mut wait = false;
        let mut words = match self.below(52) {
            0..=6 => self.set(&mut wait),
            7 | 8 => vec![b"GET".to_vec(), self.key()],
            9 => self.over_keys("DEL"),
            10 => self.over_keys("EXISTS"),
            11 => vec![self.pick(&["PTTL", "TTL"]), self.key()],
            12 | 13 => self.expire(&mut wait),
            14 => vec![self.pick(&["STRLEN", "TYPE"]), self.key()],
            15 => vec![b"LPUSH".to_vec(), self.key(), self.value()],
            21 => self.script_command(),
            // Scripts always get the right number of words: they are compared with the Lua only as
            // the library calls them.
            16..=20 => return (self.script(&mut wait), wait),
            22..=27 => return (self.claim(&mut wait), wait),
            28..=39 => return (self.queue(&mut wait), wait),
            40..=43 => self.beside_a_lock(),
            44..=49 => return (self.share(&mut wait), wait),
            _ => self.sundry(),
        };
        match self.below(40) {
            0 => words.truncate(words.len().max(2) - 1),
            1 => {
                let junk = self.pick(&["", "x", "NX", "GT", "-1", "PX", "\r\n+OK"]);
                words.push(junk);
            }
            2 => words[0].make_ascii_lowercase(),
            _ => {}
        }
        (words, wait)
    }

    fn set(&mut self, wait: &mut bool) -> Words {
        if self.below(8) == 0 {
            let counter = self.pick(&["f1", "f2", "f3"]);
            let number = self.pick(&["5", "900", "007", "-1", "1.5", "x", "4504699138998271"]);
            return vec![b"SET".to_vec(), counter, number];
        }
        let mut words = vec![b"SET".to_vec(), self.key(), self.value()];
        for _ in 0..self.below(4) {
            let option = self.pick(&["NX", "XX", "GET", "KEEPTTL", "PX", "EX", "px", "nx", "PX"]);
            let unit = option.to_ascii_uppercase();
            words.push(option);
            if unit == b"PX" || unit == b"EX" {
                let ttl = self.ttl(unit == b"EX", wait);
                words.push(ttl);
            }
        }
        words
    }

    fn expire(&mut self, wait: &mut bool) -> Words {
        let name = self.pick(&["PEXPIRE", "EXPIRE"]);
        let ttl = self.ttl(name == b"EXPIRE", wait);
        let mut words = vec![name, self.key(), ttl];
        for _ in 0..self.below(3) {
            let condition = self.pick(&["NX", "XX", "GT", "LT", "lt"]);
            words.push(condition);
        }
        words
    }

    /// One of the four scripts about one key.
    fn script(&mut self, wait: &mut bool) -> Words {
        let scripts = [script::RELEASE, script::KEEP, script::CLAIM, script::REMOVE];
        let kind = self.below(4) as usize;
        let mut words = self.call(scripts[kind]);
        words.extend([b"1".to_vec(), self.key()]);
        match kind {
            0 => words.push(self.value()),
            1 => words.extend([self.value(), self.claimed_for(wait), self.mode()]),
            2 => {
                let values = [self.value(), self.value()];
                let life = self.claimed_for(wait);
                words.extend([b"1".to_vec()].into_iter().chain(values).chain([life]));
                words.extend([b"0".to_vec(), b"0".to_vec(), self.waiter_or_none()]);
            }
            _ => words.extend([self.value(), self.value()]),
        }
        words.push(self.proof());
        words
    }

    /// By its source or its digest.
    fn call(&mut self, script: script::Script) -> Words {
        let (name, source) = match self.below(3) {
            0 => ("EVAL", script.source),
            _ => ("EVALSHA", script.sha1),
        };
        [name, source].map(|word| word.as_bytes().to_vec()).into()
    }

    /// The number that a script must return.
    fn proof(&mut self) -> Vec<u8> {
        self.pick(&["1", "57", "1099511627776", "9007199254740991"])
    }

    /// One of the five scripts about several keys, with one to three locks and their counters.
    fn claim(&mut self, wait: &mut bool) -> Words {
        let scripts = [
            script::CLAIM,
            script::FENCE,
            script::GIVE,
            script::KEEP,
            script::INSPECT,
        ];
        let kind = self.below(5) as usize;
        let script = scripts[kind];
        let is_counted = kind < 2 && self.below(2) == 0;
        let mut words = self.call(script);
        let locks = if kind == 4 {
            1
        } else {
            1 + self.below(3) as usize
        };
        let counters = if is_counted { locks } else { 0 };
        let number = |number: usize| number.to_string().into_bytes();
        words.push(number(locks + counters));
        let mut keys = ["k1", "k2", "k3", "{tag}:k\r\n4"].map(|key| key.as_bytes().to_vec());
        keys.rotate_left(self.below(4) as usize);
        words.extend_from_slice(&keys[..locks]);
        for _ in 0..counters {
            let counter = self.pick(&["f1", "f2", "f3", "k1"]);
            words.push(counter);
        }
        let ttl = self.long_ttl(false);
        let ours = self.value();
        let before = self.value();
        let first = self.pick(&["1", "7", "1000000"]);
        match kind {
            0 => {
                let life = self.claimed_for(wait);
                let waiter = self.waiter_or_none();
                words.extend([number(locks), before, ours, life, first, ttl, waiter]);
            }
            1 => words.extend([number(locks), ours, first, ttl]),
            2 => words.extend([ours, self.waiter_or_none(), self.keep_for(wait)]),
            3 => words.extend([ours, ttl, self.mode()]),
            _ => {}
        }
        words.push(self.proof());
        words
    }

    /// Is a lock extended, or set again?
    fn mode(&mut self) -> Vec<u8> {
        if self.below(2) == 0 {
            Vec::new()
        } else {
            b"restore".to_vec()
        }
    }

    /// For how long a lock stays taken after its release: mostly it does not.
    fn keep_for(&mut self, wait: &mut bool) -> Vec<u8> {
        if self.below(4) > 0 {
            Vec::new()
        } else {
            self.claimed_for(wait)
        }
    }

    /// A long time to live, or one that has passed after the wait.
    fn claimed_for(&mut self, wait: &mut bool) -> Vec<u8> {
        if self.below(10) > 0 {
            return self.long_ttl(false);
        }
        *wait = true;
        // A script may run for longer than a millisecond.
        self.pick(&["3", "4", "5"])
    }

    fn script_command(&mut self) -> Words {
        let sha1 = self.pick(&[script::GIVE.sha1, script::KEEP.sha1, script::CLAIM.sha1]);
        let source = self.pick(&[
            script::GIVE.source,
            script::KEEP.source,
            script::CLAIM.source,
        ]);
        let mut words = vec![b"SCRIPT".to_vec()];
        match self.below(3) {
            0 => words.extend([b"EXISTS".to_vec(), sha1]),
            1 => words.extend([b"LOAD".to_vec(), source]),
            _ => words.push(b"FLUSH".to_vec()),
        }
        words
    }

    fn sundry(&mut self) -> Words {
        let line = self.pick(&[
            "PING",
            "PING hello",
            "ECHO hello",
            "SELECT 0",
            "SELECT 1",
            "SELECT 16",
            "FLUSHDB",
            "CLIENT SETNAME me",
            "CLIENT GETNAME",
            "HELLO",
            "HELLO 2",
            "HELLO 3",
            "RESET",
            "NOSUCH command",
        ]);
        line.split(|byte| *byte == b' ')
            .map(<[u8]>::to_vec)
            .collect()
    }

    fn over_keys(&mut self, name: &str) -> Words {
        let mut words = vec![name.as_bytes().to_vec()];
        for _ in 0..=self.below(3) {
            let key = self.key();
            words.push(key);
        }
        words
    }

    fn key(&mut self) -> Vec<u8> {
        self.pick(&["k1", "k2", "k3", "{tag}:k\r\n4"])
    }

    fn value(&mut self) -> Vec<u8> {
        self.pick(&[
            "token-1",
            "token-2",
            "token-2",
            "",
            "redlatch:reserved:w1------------------0",
        ])
    }

    fn ttl(&mut self, seconds: bool, wait: &mut bool) -> Vec<u8> {
        match self.below(20) {
            0 => self.pick(&["0", "-1", "-5000", "+5", "05", "x", "", " 5", "1.5"]),
            1 => self.pick(&[
                "9223372036854775807",
                "-9223372036854775808",
                "9223372036854775808",
            ]),
            2 if !seconds => {
                *wait = true;
                self.pick(&["1", "2", "3"])
            }
            _ => self.long_ttl(seconds),
        }
    }

    /// A time to live that differs from all others.
    fn long_ttl(&mut self, seconds: bool) -> Vec<u8> {
        // The step and the modulus are prime, so a million draws are all different.
        self.long_ttls = (self.long_ttls + 7919) % 1_000_003;
        let thousands = self.long_ttls + 1;
        let unit = if seconds { "000" } else { "000000" };
        format!("{thousands}{unit}").into_bytes()
    }

    fn pick(&mut self, choices: &[&str]) -> Vec<u8> {
        let choice = self.below(choices.len() as u64) as usize;
        choices[choice].as_bytes().to_vec()
    }

    /// SplitMix64 (Steele, Lea, Flood 2014), which is uniform enough for this.
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
