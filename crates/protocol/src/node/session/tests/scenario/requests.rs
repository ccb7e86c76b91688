//! Requests as a scenario writes them.

use super::{number, token};
use crate::engine::{Before, Command, LockAttributes, Request, Share, Verb};
use crate::node::Ticket;
use crate::node::fixture::{self, Probe, ticket, ttl};
use crate::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

fn share_of(word: &str) -> Share {
    match word {
        "reader" => Share::Reader,
        permits => Share::Permit {
            of: number(permits),
            number: None,
        },
    }
}

/// The request in these words, and its caller.
pub(super) fn request(words: &[&str], now: Time) -> (Ticket, Request) {
    let [verb, caller, more @ ..] = words else {
        panic!("no such event: {words:?}")
    };
    let mut more: BTreeMap<_, _> = more.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let before = more.remove("after");
    let keys = more.remove("keys");
    let share = more.remove("share");
    let is_resumed = *verb == "resume";
    let verb = match *verb {
        "lock" if before.is_some() => Verb::Handoff,
        "lock" => Verb::Acquire,
        "turn" => Verb::Turn,
        "extend" | "resume" => Verb::Extend,
        "release" => Verb::Release,
        "undo" => Verb::Undo,
        "fence" => Verb::Fence,
        "wait" => Verb::Queue,
        "ping" => Verb::Ping,
        "look" => Verb::Custom,
        _ => panic!("no such event: {words:?}"),
    };
    let mut lock = fixture::lock(number(caller));
    let key = more.remove("key");
    lock.key = key.map_or(lock.key, |key| Arc::from(key.as_bytes()));
    lock.attributes = LockAttributes {
        more_keys: keys.map(|_| Arc::from(&b"more"[..])).into_iter().collect(),
        share: share.map(share_of),
        counts_in_quarantine: key == Some("register"),
        ..Default::default()
    }
    .unless_plain();
    let attributes = lock.attributes.clone();
    let mut request = fixture::about(verb, lock, now);
    let time = more.remove("ttl").map(|it| ttl(number(it)));
    match &mut request.command {
        Command::Claim(claim) => {
            claim.ttl = time.unwrap_or(claim.ttl);
            if let (Before::Predecessor(it), Some(before)) = (&mut claim.before, before) {
                (it.token, it.attributes) = (token(before), attributes);
            }
        }
        Command::Keep(keep) => keep.is_resumed = is_resumed,
        Command::Remove(removal) => {
            removal.ttl = time.unwrap_or(removal.ttl);
            removal.keep_for = more.remove("kept").map(|it| ttl(number(it)));
            removal.waiter = more.remove("waiter").map(token);
        }
        Command::Custom(look) => {
            *look = Arc::new(Probe {
                is_look: true,
                ..Probe::default()
            });
        }
        _ => {}
    }
    assert!(more.is_empty(), "unknown: {more:?}");
    (ticket(number(caller)), request)
}
