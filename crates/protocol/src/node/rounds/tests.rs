//! Rounds on several nodes: which nodes are asked, and which answers count.

mod custom;
mod deadlines;
mod fencing;
mod left_output;
mod leftovers;
mod numbering;
mod permits;
mod propagation;
mod quarantine;
mod same_server;
mod silent;
mod waits;
mod watching;

use crate::engine::{NodeSet, Verb};
use crate::node::fixture::{at, commands, greeting, node, queue_wait, request, write};
use crate::node::{
    Conversation, Ended, NodeError, Phase, RoundOutcome, Rounds, Session, SessionOptions,
};
use crate::time::Time;
use std::time::Duration;

/// Three nodes and their replies, in literal bytes. A waiter is a number.
struct Nodes {
    rounds: Rounds<u32>,
    now: Time,
    /// The bytes written to each node that the test has not checked yet.
    sent: Vec<Vec<u8>>,
}

impl Nodes {
    fn down(wait_for_all: bool) -> Self {
        Self::of(3, wait_for_all)
    }

    fn of(count: u64, wait_for_all: bool) -> Self {
        let session = |index| Session::new(SessionOptions::new(&format!("redis://{index}"), index));
        let rounds = Rounds::new((0..count).map(session).collect(), wait_for_all);
        Self {
            rounds,
            now: at(0),
            sent: vec![Vec::new(); count as usize],
        }
    }

    /// All connected and greeted.
    fn ready(wait_for_all: bool) -> Self {
        let mut nodes = Self::down(wait_for_all);
        (0..3).for_each(|index| nodes.greet(index));
        nodes
    }

    fn greet(&mut self, index: usize) {
        self.connect(index);
        self.receive(index, &greeting(&format!("run {index}"), 1_000));
        self.rounds.session(node(index)).used();
    }

    fn connect(&mut self, index: usize) {
        self.rounds
            .session(node(index))
            .connecting(self.now, Phase::Connecting);
        self.rounds.session(node(index)).connected(self.now);
        let greeting = self.rounds.session(node(index)).output().len();
        self.rounds.session(node(index)).wrote(greeting);
    }

    fn open(&mut self, waiter: u32, verb: Verb, owner: u8) {
        self.rounds
            .begin(self.now, request(verb, owner, self.now), waiter);
    }

    /// With an end of the caller's own.
    fn open_until(&mut self, waiter: u32, owner: u8, millis: u64) {
        let request = request(Verb::Acquire, owner, self.now).ending_by(at(millis));
        self.rounds.begin(self.now, request, waiter);
    }

    fn wait(&mut self, caller: u32, waiter: u8) {
        self.rounds
            .wait(self.now, &queue_wait(waiter, self.now), caller);
    }

    fn post(&mut self, verb: Verb, owner: u8) {
        self.rounds.send(self.now, request(verb, owner, self.now));
    }

    /// Writes all output, and then receives this text.
    fn receive(&mut self, index: usize, text: &str) {
        write(self.rounds.session(node(index)), &mut self.sent[index]);
        self.rounds.received(self.now, node(index), text.as_bytes());
    }

    fn lose(&mut self, index: usize) {
        self.sent[index].clear();
        self.rounds.closed(
            self.now,
            node(index),
            NodeError::Disconnected("gone".to_owned()),
        );
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        self.rounds.tick(self.now);
    }

    fn commands(&mut self, index: usize) -> Vec<String> {
        write(self.rounds.session(node(index)), &mut self.sent[index]);
        commands(&std::mem::take(&mut self.sent[index]))
    }

    /// The outcome of the only decided round.
    fn over(&mut self) -> RoundOutcome {
        self.ended().into_round().expect("it was a round")
    }

    /// How the only thing has ended that was waited for.
    fn ended(&mut self) -> Ended {
        let (_, ended) = self.rounds.poll().expect("a round or a wait is over");
        assert!(self.rounds.poll().is_none());
        ended
    }

    fn is_over(&mut self) -> bool {
        self.rounds.poll().is_some()
    }
}

fn set(indices: &[usize]) -> NodeSet {
    indices.iter().copied().map(node).collect()
}

#[test]
fn a_round_ends_when_it_is_decided_and_not_before() {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Acquire, 1);
    for index in 0..3 {
        assert_eq!(nodes.commands(index), ["SET 1"]);
    }
    nodes.receive(2, "+OK\r\n");
    assert!(!nodes.is_over());
    nodes.receive(0, "+OK\r\n");
    let votes = nodes.over();
    assert_eq!(votes.votes.tally.granted, set(&[0, 2]));
    assert_eq!(
        votes.votes.sent,
        NodeSet::all(3),
        "the third node has the key too, or will get it"
    );
    assert!(votes.reports.is_empty(), "a won round needs no reports");
}

#[test]
fn with_wait_for_all_a_round_ends_with_the_last_answer_or_at_its_deadline() {
    let mut nodes = Nodes::ready(true);
    nodes.open(1, Verb::Acquire, 1);
    nodes.receive(0, "+OK\r\n");
    nodes.receive(1, "+OK\r\n");
    assert!(!nodes.is_over());
    assert_eq!(nodes.rounds.next_deadline(), Some(at(50)));
    nodes.pass(49);
    assert!(!nodes.is_over());
    nodes.pass(1);
    assert_eq!(nodes.over().votes.tally.granted, set(&[0, 1]));
}

#[cfg(feature = "diagnostics")]
#[test]
fn a_ping_waits_for_every_node() {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Ping, 0);
    nodes.receive(0, "+PONG\r\n");
    nodes.receive(1, "+PONG\r\n");
    assert!(!nodes.is_over());
    nodes.receive(2, "-LOADING Redis is loading the dataset in memory\r\n");
    let statuses = nodes.over().statuses;
    let has_failed: Vec<_> = statuses
        .iter()
        .map(|status| status.last_error.is_some())
        .collect();
    assert_eq!(has_failed, [false, false, true]);
}

#[test]
fn a_late_answer_does_not_count_for_another_round() {
    let mut nodes = Nodes::ready(false);
    nodes.open_until(1, 1, 50);
    nodes.receive(0, "$-1\r\n");
    nodes.pass(50);
    let votes = nodes.over();
    assert_eq!(votes.votes.tally.refused, set(&[0]));
    assert_eq!(votes.votes.sent, NodeSet::all(3));
    nodes.post(Verb::Undo, 1);

    // The next round uses the same entry.
    nodes.open(2, Verb::Acquire, 2);
    nodes.receive(1, "+OK\r\n:2\r\n");
    nodes.receive(2, "+OK\r\n:2\r\n");
    assert!(
        !nodes.is_over(),
        "these answers belong to the previous round"
    );
    nodes.receive(1, "$-1\r\n");
    nodes.receive(2, "$-1\r\n");
    assert_eq!(nodes.over().votes.tally.refused, set(&[1, 2]));
}

#[test]
fn a_request_that_was_never_written_needs_no_undo() {
    let mut nodes = Nodes::ready(false);
    nodes.lose(2);
    nodes.pass(500);
    nodes.open(1, Verb::Acquire, 1);
    nodes.connect(2);
    nodes.receive(0, "$-1\r\n");
    nodes.receive(1, "$-1\r\n");
    let votes = nodes.over().votes;
    assert_eq!(votes.sent, set(&[0, 1]));
    nodes.receive(2, &greeting("run 2", 1_000));
    assert_eq!(
        nodes.commands(2),
        [""; 0],
        "after the round, nothing would undo it"
    );
}

#[test]
fn reports_contain_the_error_of_each_node() {
    let mut nodes = Nodes::down(false);
    nodes.open(1, Verb::Acquire, 1);
    nodes
        .rounds
        .session(node(0))
        .connecting(nodes.now, Phase::Resolving);
    nodes.connect(1);
    nodes.connect(2);
    nodes.receive(2, &greeting("run 2", 1_000));
    nodes.receive(2, "-MISCONF no disk\r\n");
    nodes.pass(2_000);
    let reports: Vec<_> = nodes
        .over()
        .reports
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        reports,
        [
            "redis://0: timed out resolving its name",
            "redis://1: timed out waiting for an answer to the greeting",
            "redis://2: server error: MISCONF no disk",
        ]
    );
}

#[test]
fn permanent_errors_are_distinguished() {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Acquire, 1);
    nodes.receive(0, "-NOPERM this user may not\r\n");
    nodes.receive(1, "-LOADING\r\n");
    let votes = nodes.over().votes;
    assert_eq!(
        (votes.tally.failed, votes.permanent_failures),
        (set(&[0, 1]), set(&[0]))
    );
}

#[test]
fn a_confirmed_extension_restores_a_lost_key() {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Extend, 1);
    (0..3).for_each(|index| assert_eq!(nodes.commands(index), ["EVAL 1"]));
    nodes.receive(0, ":-1\r\n");
    assert_eq!(
        nodes.commands(0),
        [""; 0],
        "no key is restored before a majority has confirmed"
    );
    nodes.receive(1, ":1\r\n");
    nodes.receive(2, ":1\r\n");
    nodes.over();
    assert_eq!(nodes.commands(0), ["EVALSHA 1"]);
    nodes.receive(0, ":2\r\n");
    assert!(!nodes.is_over());
}

#[test]
fn a_lost_key_is_restored_on_a_late_answer_with_the_remaining_ttl() {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Extend, 1);
    nodes.receive(1, ":1\r\n");
    nodes.receive(2, ":1\r\n");
    nodes.over();
    assert_eq!(nodes.commands(0), ["EVAL 1"]);
    nodes.pass(300);
    nodes.receive(0, ":-1\r\n");
    let output = nodes.rounds.session(node(0)).output().to_vec();
    let end = b"\r\n$3\r\n700\r\n$7\r\nrestore\r\n$1\r\n2\r\n";
    assert!(output.ends_with(end), "{}", output.escape_ascii());
}

#[test]
fn no_key_is_restored_after_the_release() {
    for verb in [Verb::Release, Verb::Undo] {
        let mut nodes = Nodes::ready(false);
        nodes.open(1, Verb::Extend, 1);
        nodes.receive(1, ":1\r\n");
        nodes.receive(2, ":1\r\n");
        nodes.over();
        nodes.commands(0);
        if verb == Verb::Undo {
            nodes.post(verb, 1);
        } else {
            nodes.open(2, verb, 1);
        }
        assert_eq!(nodes.commands(0), ["EVAL 1"]);
        nodes.receive(0, ":-1\r\n");
        assert_eq!(nodes.commands(0), [""; 0], "{verb:?}");
    }
}

#[test]
fn no_key_is_restored_after_the_ttl_or_without_a_majority() {
    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Extend, 1);
    nodes.receive(1, ":1\r\n");
    nodes.receive(2, ":1\r\n");
    nodes.commands(0);
    nodes.now = at(1_000);
    nodes.receive(0, ":-1\r\n");
    assert_eq!(nodes.commands(0), [""; 0]);

    let mut nodes = Nodes::ready(false);
    nodes.open(1, Verb::Extend, 1);
    nodes.commands(0);
    nodes.receive(0, ":-1\r\n");
    nodes.receive(1, ":-1\r\n");
    nodes.receive(2, ":1\r\n");
    assert_eq!(nodes.commands(0), [""; 0]);
}
