//! Looking for the master of a group although there is a connection.

use super::reign::acknowledged::{greeted_with, numbers, standing};
use super::reign::{ID, check, greeted, marker, number};
use crate::engine::Verb;
use crate::node::fixture::ScriptedSession;
use crate::node::{NodeError, Whereabouts};
use crate::time::Time;
use Whereabouts::{Elsewhere, Here, SameAddress};

/// The master is looked for, and whoever was asked `ago` before names it so.
fn named(talk: &mut ScriptedSession, epoch: u64, ago: u64, it_is: Whereabouts) -> bool {
    talk.session.looking(talk.now);
    let asked_at = Time::from_millis(talk.now.since(Time::ZERO).as_millis() as u64 - ago);
    talk.session.named(talk.now, epoch, asked_at, it_is)
}

/// A vote is refused as by a master whose replicas have left it.
fn refused(talk: &mut ScriptedSession) {
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    talk.hear("-NOREPLICAS Not enough good replicas to write.\r\n");
    talk.hear(check(number(&sent), &marker("900000"), ID));
    assert!(!talk.session.is_down(), "the connection stays in use");
    talk.answers();
}

#[test]
fn a_master_whose_replicas_have_left_it_is_looked_for_at_once_and_not_in_a_tight_loop() {
    let mut talk = greeted(100);
    assert_eq!(talk.session.looks_at(), None);
    talk.pass(1_000);
    refused(&mut talk);
    assert!(talk.session.looks_at().is_some_and(|at| at <= talk.now));
    assert!(
        talk.session
            .next_deadline()
            .is_some_and(|at| at <= talk.now)
    );
    talk.session.looking(talk.now);
    assert_eq!(
        (talk.session.looks_at(), talk.session.next_deadline()),
        (None, None)
    );
    let again_at = talk.now.after(talk.session.options.reconnect.1);
    talk.pass(10);
    refused(&mut talk);
    assert_eq!(talk.session.looks_at(), Some(again_at));
    assert_eq!(talk.session.next_deadline(), Some(again_at));
    talk.lose();
    assert_eq!(talk.session.looks_at(), None, "it is looked for anyway");
}

#[test]
fn so_is_one_whose_votes_no_majority_acknowledges() {
    let marker = format!("redlatch2 a {ID} 0 900000 n 2 0 0");
    let mut talk = greeted_with(&marker);
    talk.session.looking(talk.now);
    talk.pass(1_000);
    talk.send(1, Verb::Acquire);
    let sent = talk.written();
    let numbers = numbers(&sent);
    talk.hear(format!(
        "+OK\r\n{}:0\r\n{}",
        standing(numbers[1], &marker, 100, &[]),
        standing(numbers[3], &marker, 120, &[99])
    ));
    assert_eq!(
        talk.problem(),
        NodeError::NotAcknowledged {
            wanted: 1,
            acknowledged: 0
        }
    );
    assert!(talk.session.looks_at().is_some_and(|at| at <= talk.now));
}

#[test]
fn a_master_is_looked_for_when_an_answer_is_late_and_as_long_as_it_is() {
    let mut talk = greeted(100);
    talk.pass(1_000);
    talk.send(1, Verb::Acquire);
    talk.written();
    let late_at = talk.now.after(talk.session.options.node_timeout);
    assert_eq!(talk.session.looks_at(), Some(late_at));
    assert_eq!(talk.session.next_deadline(), Some(late_at));
    talk.session.looking(late_at);
    assert_eq!(
        talk.session.looks_at(),
        Some(late_at.after(talk.session.options.reconnect.1))
    );
}

#[test]
fn a_plain_node_is_not_looked_for() {
    let mut talk = ScriptedSession::ready();
    talk.send(1, Verb::Acquire);
    talk.hear("-NOREPLICAS Not enough good replicas to write.\r\n");
    talk.send(2, Verb::Acquire);
    assert_eq!(talk.session.looks_at(), None);
}

#[test]
fn the_connection_is_left_for_who_is_named_in_its_place_and_the_next_is_made_without_a_pause() {
    // In which epoch, asked how long before, and where.
    for (epoch, ago, it_is, is_left) in [
        (7, 0, Here, false),
        (8, 0, Here, true),
        (7, 0, Elsewhere, true),
        (8, 0, Elsewhere, true),
        (6, 0, Elsewhere, false),
        (7, 1, Elsewhere, false),
        (7, 0, SameAddress, false),
    ] {
        let mut talk = greeted(100);
        talk.pass(3_000);
        talk.session.located(7, talk.now);
        talk.send(1, Verb::Acquire);
        talk.written();
        let case = format!("{epoch} {ago} {it_is:?}");
        assert_eq!(named(&mut talk, epoch, ago, it_is), is_left, "{case}");
        assert_eq!(talk.session.is_down(), is_left, "{case}");
        if is_left {
            assert_eq!(talk.problem(), NodeError::ReignChanged, "{case}");
            talk.send(2, Verb::Acquire);
            assert!(talk.session.wants_connection(talk.now), "{case}");
        }
    }
}

#[test]
fn behind_the_same_address_another_server_is_looked_for_if_a_vote_was_refused() {
    let mut talk = greeted(100);
    refused(&mut talk);
    assert!(named(&mut talk, 0, 0, SameAddress));
    assert!(!named(&mut talk, 0, 0, Elsewhere), "it is left already");
}
