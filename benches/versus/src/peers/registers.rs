//! Registers of this library: values of a hundred bytes, which begin with how often they were
//! changed.

use super::redlatch::client;
use crate::work::{Blocking, Note};
use ::redlatch::LockClient;
use ::redlatch::register::Value;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        Self { clients, action, turn: AtomicUsize::new(0) }
    }
}

/// A client of these servers, which it makes a group.
pub fn form(urls: &[String], in_memory: bool) -> LockClient {
    let client = client(urls);
    client.registers().form(in_memory).expect("the servers become a group");
    client
}

fn one_of_many(index: usize) -> String {
    format!("versus-register-first:{index}")
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
    /// How many calls left open whether they changed the value.
    type Held<'a> = u32;

    fn acquire(&self, resource: &str, _: bool) -> u32 {
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
            return 0;
        }
        let mut unknown = 0;
        // A change that may have been made is counted, and another one follows.
        while let Err(error) = register.change(|before| Some(value(1 + before.map_or(0, changes))))
        {
            assert!(error.may_have_happened(), "a change fails: {error}");
            unknown += 1;
        }
        unknown
    }

    fn release(&self, _: u32) {}

    fn note(&self, unknown: &u32) -> Note {
        Note { permit: None, unknown: *unknown }
    }
}
