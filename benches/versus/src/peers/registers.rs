//! Registers of this library: values of a hundred bytes, which begin with how often they were
//! changed.

use super::redlatch::client;
use crate::work::{Cycle, Note};
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
pub fn register(urls: &[String], action: Action) -> Cycle {
    let count = if action == Action::Alternate { 2 } else { 1 };
    let clients: Vec<_> = (0..count).map(|_| client(urls)).collect();
    let one_of_many = |index| format!("versus-register-first:{index}");
    if action == Action::First {
        // What creates a register takes fewer rounds.
        for index in 0..MANY {
            let register = clients[0].register(one_of_many(index));
            let made = register.and_then(|register| register.change(|_| Some(value(0))));
            made.expect("a majority of the servers answers");
        }
    }
    let turns = AtomicUsize::new(0);
    Box::new(move |resource, _, while_held| {
        let turn = turns.fetch_add(1, Ordering::Relaxed);
        let name = match action {
            Action::First => one_of_many(turn % MANY),
            _ => resource.to_owned(),
        };
        let register = clients[turn % count]
            .register(name)
            .expect("the name can be used");
        let mut unknown = 0;
        let read = || register.read().expect("a majority of the servers answers");
        if action != Action::Read || read().is_none() {
            let change = || register.change(|before| Some(value(1 + before.map_or(0, changes))));
            // A change that may have been made is counted, and another one follows.
            while let Err(error) = change() {
                assert!(error.may_have_happened(), "a change fails: {error}");
                unknown += 1;
            }
        }
        while_held(Note {
            permit: None,
            unknown,
        });
    })
}

/// The value after this many changes.
pub fn value(changes: u64) -> Vec<u8> {
    format!("{changes:0DIGITS$}{}", "a".repeat(LENGTH - DIGITS)).into_bytes()
}

/// How often a value was changed.
pub fn changes(value: &Value) -> u64 {
    let digits = std::str::from_utf8(&value.bytes()[..DIGITS]).expect("digits are ASCII");
    digits.parse().expect("digits are a number")
}
