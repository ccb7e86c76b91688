//! How other libraries lock on a group that fails over, as far as it matters who holds the lock:
//! models of what Redisson 3.37 and rueidislock 1.0 send, which are not Rust.

use std::cell::RefCell;
use std::thread;
use std::time::{Duration, Instant};

use support::claims::{Hold, RESOURCE};
use support::cli::{Client, Value};

/// Who locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rival {
    /// One key, and `WAIT` for the replicas that are connected: one that acknowledges is enough.
    Redisson,
    /// A majority of three keys, which are all on the one master.
    Rueidislock,
}

/// A connection to the master, which is found by its address.
pub(crate) struct Master {
    port: u16,
    connection: Option<Client>,
    tokens: u64,
}

impl Master {
    /// At this port, which leads to the present master.
    pub(crate) fn at(port: u16) -> Self {
        Self {
            port,
            connection: None,
            tokens: 0,
        }
    }

    /// `None` if there is no answer, or none of a master: the next call connects again.
    fn run(&mut self, words: &[&str]) -> Option<Value> {
        let mut client = self
            .connection
            .take()
            .or_else(|| Client::connect(self.port).ok())?;
        match client.try_command(words).ok()? {
            Value::Error(_) => None,
            value => {
                self.connection = Some(client);
                Some(value)
            }
        }
    }

    /// Has a replica acknowledged what was written, or is none connected?
    fn is_copied(&mut self) -> bool {
        let info = self.run(&["INFO", "replication"]);
        let Some(replicas) = info.and_then(|info| info.field("connected_slaves")) else {
            return false;
        };
        let acknowledged = self
            .run(&["WAIT", &replicas, "1000"])
            .map(|count| count.integer());
        acknowledged.is_some_and(|count| count > 0 || replicas == "0")
    }
}

/// A lock of a rival.
pub(crate) struct Held<'a> {
    master: &'a RefCell<Master>,
    keys: Vec<String>,
    token: String,
    until: Instant,
}

impl<'a> Held<'a> {
    /// The lock, for this long from when the first command was sent.
    pub(crate) fn acquire(
        rival: Rival,
        master: &'a RefCell<Master>,
        ttl: Duration,
    ) -> Option<Self> {
        let until = Instant::now() + ttl;
        let keys: Vec<String> = match rival {
            Rival::Redisson => vec![RESOURCE.to_owned()],
            Rival::Rueidislock => (0..3)
                .map(|number| format!("{number}:{RESOURCE}"))
                .collect(),
        };
        master.borrow_mut().tokens += 1;
        let token = format!("{}-{}", std::process::id(), master.borrow().tokens);
        let held = Self {
            master,
            keys,
            token,
            until,
        };
        let is_acquired = held.is_granted(rival, ttl) && held.is_held();
        if !is_acquired {
            drop(held);
            thread::sleep(Duration::from_millis(20));
            return None;
        }
        Some(held)
    }

    fn is_granted(&self, rival: Rival, ttl: Duration) -> bool {
        let mut master = self.master.borrow_mut();
        let millis = ttl.as_millis().to_string();
        let mut set = |key: &String| {
            master.run(&["SET", key, &self.token, "NX", "PX", &millis]) == Some(Value::ok())
        };
        let granted = self.keys.iter().filter(|key| set(key)).count();
        granted * 2 > self.keys.len() && (rival != Rival::Redisson || master.is_copied())
    }
}

impl Hold for Held<'_> {
    fn promised(&self) -> Instant {
        self.until
    }

    fn is_held(&self) -> bool {
        Instant::now() < self.until
    }

    fn extend(&mut self, _: Duration) -> bool {
        false
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        const REMOVE: &str =
            "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end";
        for key in &self.keys {
            self.master
                .borrow_mut()
                .run(&["EVAL", REMOVE, "1", key, &self.token]);
        }
    }
}
