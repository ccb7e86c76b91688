//! State that a round leaves behind, and reports of nodes that were not asked.

use super::{Nodes, set};
use crate::engine::{NodeSet, Request, Verb, Verdict};
use crate::node::Conversation;
use crate::node::fixture::{at, greeting, request};
use crate::node::{NodeAnswer, NodeError, NodeKind, NodeReport, Phase, RoundOutcome};
use std::time::Duration;

#[test]
fn a_confirmed_extension_does_not_wait_for_a_node_that_was_never_asked() {
    let mut nodes = Nodes::ready(false);
    // The request waits for a connection to the third node, and is then never sent.
    nodes.lose(2);
    nodes.pass(500);
    for round in 1..=100 {
        nodes.open(round, Verb::Extend, 1);
        nodes.receive(0, &format!(":{round}\r\n"));
        nodes.receive(1, &format!(":{round}\r\n"));
        let votes = nodes.over();
        assert_eq!(votes.votes.tally.granted, set(&[0, 1]));
        assert_eq!(votes.votes.sent, set(&[0, 1]));
    }
    let rounds = &nodes.rounds;
    let entries = (rounds.entries.len(), rounds.vacant.len());
    assert_eq!(entries, (2, 1), "only the last is kept, to restore the key");
}

#[test]
fn a_lock_removed_during_its_extension_is_not_restored() {
    for (verb, is_waited_for) in [(Verb::Undo, false), (Verb::Release, true)] {
        let mut nodes = Nodes::ready(false);
        nodes.open(1, Verb::Extend, 1);
        (0..3).for_each(|index| assert_eq!(nodes.commands(index).len(), 1));
        // One thread extends the lock, and another releases it before the nodes have answered.
        if is_waited_for {
            nodes.open(2, verb, 1);
        } else {
            nodes.post(verb, 1);
        }
        (0..3).for_each(|index| assert_eq!(nodes.commands(index).len(), 1));
        nodes.receive(2, ":-1\r\n");
        nodes.receive(0, ":1\r\n");
        nodes.receive(1, ":1\r\n");
        let (waiter, ended) = nodes.rounds.poll().expect("the extension is decided");
        let result = ended.into_round().expect("it was a round");
        assert_eq!((waiter, result.votes.tally.granted), (1, set(&[0, 1])));
        assert_eq!(
            nodes.commands(2),
            [""; 0],
            "a restored key would stay until its ttl has passed"
        );
    }
}

#[test]
fn an_attempt_undone_after_its_deadline_is_not_written_after_its_removal() {
    for verb in [Verb::Acquire, Verb::Handoff] {
        let mut nodes = Nodes::ready(false);
        nodes.lose(2);
        nodes.pass(500);
        nodes.connect(2);
        nodes.open(1, verb, 1);
        // The leader was stopped, so the caller undoes its attempt before a tick has ended the
        // round at its deadline.
        nodes.now = nodes.now.after(Duration::from_millis(500));
        nodes.post(Verb::Undo, 1);
        nodes.receive(2, &greeting("run 2", 1_000));
        let late = nodes.commands(2);
        assert!(
            late.iter().all(|command| command.starts_with("EVAL ")),
            "{verb:?}: {late:?}"
        );
        assert!(late.len() <= 1, "{verb:?}: {late:?}");
        assert!(nodes.is_over());
        assert!(nodes.rounds.attempts.is_empty(), "{verb:?}");
    }
}

#[test]
fn a_removal_after_the_deadline_ends_its_own_attempt_among_many() {
    let mut nodes = Nodes::ready(false);
    for owner in 1..=9 {
        nodes.open(u32::from(owner), Verb::Acquire, owner);
    }
    nodes.now = nodes.now.after(Duration::from_millis(500));
    for owner in [5, 1, 9] {
        nodes.post(Verb::Undo, owner);
        let ended = nodes.rounds.poll().map(|(waiter, _)| waiter);
        assert_eq!(ended, Some(u32::from(owner)));
        assert!(!nodes.is_over(), "the others are late too, and not undone");
    }
    assert_eq!(nodes.rounds.attempts.len(), 6);
}

#[test]
fn a_node_that_was_not_asked_is_reported_as_such() {
    let mut nodes = Nodes::ready(false);
    let mut release = request(Verb::Release, 1, nodes.now);
    release.nodes = set(&[0, 1]);
    nodes.rounds.begin(nodes.now, release, 1);
    nodes.receive(0, ":1\r\n");
    nodes.lose(1);
    let answers: Vec<_> = nodes
        .over()
        .reports
        .into_iter()
        .map(|report| report.answer)
        .collect();
    assert!(matches!(
        answers[..],
        [
            NodeAnswer::Granted,
            NodeAnswer::Failed(_),
            NodeAnswer::NotAsked
        ]
    ));
    assert_eq!(nodes.commands(2), [""; 0]);
}

#[test]
fn a_round_without_replies_may_have_been_written_to_every_node() {
    let names = ["redis://0", "redis://1", "redis://2"];
    let error = NodeError::TimedOut(Phase::Queued);
    let asked =
        names.map(|name| NodeReport::new(name.into(), NodeKind::Group, NodeAnswer::NotAsked));
    let outcome = RoundOutcome::without_replies(&asked, &error);
    // So the removal after it goes to every node.
    assert_eq!(outcome.votes.sent, set(&[0, 1, 2]));
    assert_eq!(outcome.votes.tally.answered_by_majority(), Verdict::Lost);
    #[cfg(feature = "diagnostics")]
    assert!(
        outcome
            .statuses
            .iter()
            .all(|status| status.last_error.as_ref() == Some(&error))
    );
    #[cfg(feature = "diagnostics")]
    assert!(outcome.statuses.iter().map(|status| &*status.url).eq(names));
    assert_eq!(outcome.said, vec![None; 3]);
    let failed = names.map(|name| {
        let answer = NodeAnswer::Failed(error.clone());
        NodeReport::new(name.into(), NodeKind::Group, answer)
    });
    assert_eq!(outcome.reports, failed);
}

#[test]
fn a_removal_skips_unknown_nodes() {
    let mut nodes = Nodes::ready(false);
    let undo = Request {
        nodes: NodeSet::all(64),
        ..request(Verb::Undo, 1, at(0))
    };
    nodes.rounds.send(nodes.now, undo.clone());
    (0..3).for_each(|index| assert_eq!(nodes.commands(index), ["EVAL 1"]));
}

#[test]
fn a_waiter_that_left_after_its_deadline_is_not_written_after_its_removal() {
    let mut nodes = Nodes::ready(false);
    nodes.lose(2);
    nodes.pass(500);
    nodes.connect(2);
    nodes.open(1, Verb::Queue, 1);
    nodes.now = nodes.now.after(Duration::from_millis(500));
    let name = Some(crate::engine::Token::new([1; crate::engine::Token::LEN]));
    let mut leave = request(Verb::Undo, 1, nodes.now);
    let removal = leave.removal_mut();
    removal.waiter = name;
    nodes.rounds.send(nodes.now, leave.clone());
    nodes.receive(2, &greeting("run 2", 1_000));
    let late = nodes.commands(2);
    assert!(late.iter().all(|command| command == "EVAL 1"), "{late:?}");
}

#[test]
fn a_removal_is_sent_only_to_nodes_that_may_hold_the_key() {
    let mut nodes = Nodes::ready(false);
    let mut release = request(Verb::Release, 1, nodes.now);
    release.nodes = set(&[1]);
    nodes.rounds.begin(nodes.now, release, 1);
    assert_eq!(nodes.commands(0), [""; 0]);
    assert_eq!(nodes.commands(1), ["EVAL 1"]);
    let votes = nodes.over();
    assert_eq!(votes.votes.tally.refused, set(&[0, 2]));
}
