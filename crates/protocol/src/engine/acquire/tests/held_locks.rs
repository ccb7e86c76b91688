//! Granted locks have enough validity left, and record all nodes that may hold the key.

use super::super::super::fixture::{Script, draw, rules, votes_of};
use super::*;

#[test]
fn a_lock_with_too_little_validity_left_is_undone() {
    let mut rules = (*rules(5)).clone();
    rules.min_validity = Duration::from_millis(900);
    let rules = Arc::new(rules);
    let ttl = Ttl::from_duration(Duration::from_millis(1_000)).unwrap();
    // Requested at 1,000 and valid until 1,988.
    for (now, is_enough) in [(1_088, true), (1_089, false)] {
        let key = Arc::from(&b"key"[..]);
        let mut acquire = Script::new(Acquire::new(Arc::clone(&rules), key, ttl, Wait::No));
        acquire.attempt(1_000, draw(1));
        let rest = acquire.answer(now, votes_of("yyyyy"));
        if is_enough {
            assert!(matches!(rest.done(), Acquired::Held(_)));
        } else {
            assert_eq!(token_of(&rest.undo()), draw(1).token);
            assert!(matches!(rest.done(), Acquired::TooSlow(_)));
        }
    }
}

#[test]
fn a_lock_is_released_on_every_node_that_got_the_request() {
    let mut acquire = acquire(Wait::No);
    acquire.attempt(0, draw(1));
    // The fourth node may set the key as well.
    let mut votes = votes_of("yyy-f");
    votes.sent.remove(crate::engine::Node::new(4));
    let Acquired::Held(held) = acquire.answer(1, votes.clone()).done() else {
        panic!()
    };
    assert_eq!(held.nodes, votes.sent);
    assert_eq!(
        held.undo(Time::from_millis(2), &rules(5)).nodes,
        NodeSet::all(4)
    );
}
