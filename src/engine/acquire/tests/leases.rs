//! What is handed out: with enough time left, and with all nodes known that may hold it.

use super::super::super::fixture::{Script, ballot, draw, rules};
use super::*;

#[test]
fn a_lock_with_less_left_than_is_wanted_is_undone() {
    let mut rules = (*rules(5)).clone();
    rules.min_validity = Duration::from_millis(900);
    let rules = Arc::new(rules);
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    // Asked for at 1,000 and valid until 1,988.
    for (now, is_enough) in [(1_088, true), (1_089, false)] {
        let key = Arc::from(&b"key"[..]);
        let mut acquire = Script::new(Acquire::new(Arc::clone(&rules), key, ttl, Wait::No));
        acquire.attempt(1_000, draw(1));
        let rest = acquire.answer(now, ballot("yyyyy"));
        if is_enough {
            assert!(matches!(rest.done(), Acquired::Held(_)));
        } else {
            assert_eq!(token_of(&rest.undo()), draw(1).token);
            assert!(matches!(rest.done(), Acquired::TooSlow(_)));
        }
    }
}

#[test]
fn a_lock_is_to_be_released_wherever_the_request_was_written() {
    let mut acquire = acquire(Wait::No);
    acquire.attempt(0, draw(1));
    // The fourth will plant the key as well, for all that is known.
    let mut ballot = ballot("yyy-f");
    ballot.sent.remove(crate::engine::Node::new(4));
    let Acquired::Held(lease) = acquire.answer(1, ballot).done() else { panic!() };
    assert_eq!(lease.nodes, ballot.sent);
    assert_eq!(lease.undo(Time::from_millis(2), &rules(5)).nodes, NodeSet::all(4));
}
