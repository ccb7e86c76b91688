//! Registers of this library: values of a hundred bytes, which begin with how often they were
//! changed.

use crate::work::Blocking;
use ::redlatch::LockClient;
use ::redlatch::register::Value;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The bytes of a value, and those of them that are the count.
const LENGTH: usize = 100;
const DIGITS: usize = 20;

/// More registers than a client remembers.
const MANY: usize = 1100;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Read,
    Change,
    /// Registers in turn, more of them than a client remembers: each change is its first one.
    First,
    /// Two clients change it in turns, so that each finds the other's ballot.
    Alternate,
}

/// One client for all threads, or two that take turns.
pub struct Registers {
    clients: Vec<LockClient>,
    action: Action,
    turn: AtomicUsize,
    unknown: AtomicU64,
}

impl Registers {
    pub fn new(urls: &[String], action: Action) -> Self {
        let count = if action == Action::Alternate { 2 } else { 1 };
        let clients: Vec<_> = (0..count).map(|_| client(urls)).collect();
        if action == Action::First {
            // What creates a register takes fewer rounds.
            for index in 0..MANY {
                let register = clients[0].register(one_of_many(index));
                let made = register.and_then(|register| register.change(|_| Some(value(0))));
                made.expect("a majority of the servers answers");
            }
        }
        Self { clients, action, turn: AtomicUsize::new(0), unknown: AtomicU64::new(0) }
    }
}

/// A client of servers that are a group.
pub fn client(urls: &[String]) -> LockClient {
    // A long timeout: a machine that stalls for a moment must not end the whole run.
    let client = LockClient::builder().nodes(urls).restart_guard(false);
    let client = client.node_timeout(Duration::from_secs(1)).build();
    client.expect("the servers' URLs can be used")
}

fn one_of_many(index: usize) -> String {
    format!("versus-registerfirst:{index}")
}

/// The value after so many changes.
pub fn value(changes: u64) -> Vec<u8> {
    format!("{changes:0DIGITS$}{}", "a".repeat(LENGTH - DIGITS)).into_bytes()
}

/// How often a value was changed.
pub fn changes(value: &Value) -> u64 {
    let digits = std::str::from_utf8(&value.bytes()[..DIGITS]).expect("digits are ASCII");
    digits.parse().expect("digits are a number")
}

impl Blocking for Registers {
    type Held<'a> = ();

    fn acquire(&self, resource: &str, _: bool) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let client = &self.clients[turn % self.clients.len()];
        let name = match self.action {
            Action::First => one_of_many(turn % MANY),
            _ => resource.to_owned(),
        };
        let register = client.register(name).expect("the name can be used");
        if self.action == Action::Read
            && register.read().expect("a majority of the servers answers").is_some()
        {
            return;
        }
        // A change that may have been made is counted, and another one follows.
        while let Err(error) = register.change(|before| Some(value(1 + before.map_or(0, changes))))
        {
            assert!(error.may_have_happened(), "a change fails: {error}");
            self.unknown.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn release(&self, (): ()) {}

    fn unknown(&self) -> u64 {
        self.unknown.load(Ordering::Relaxed)
    }
}
