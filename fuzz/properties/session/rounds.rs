//! Rounds over three sessions.

use super::{Input, PERMITS, PUSHES, QUEUE_REPLIES, REPLIES, SHARE_REPLIES};
use super::{pause, push, reply, request, waiter};
use redlatch_protocol::engine::{Node, QueueWait, Request, Token};
use redlatch_protocol::node::{
    Conversation, Ended, IN_FLIGHT_MAX, Message, NodeError, Order, PENDING_MAX, Phase, Rounds,
    Session, SessionOptions,
};
use redlatch_protocol::time::Time;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

const NODES: usize = 3;

pub(super) fn check(mut input: Input<'_>) {
    let wait_for_all = input.byte().is_some_and(|byte| byte % 2 == 0);
    let session = |seed| Session::new(SessionOptions::new("node", seed));
    let mut rounds = Rounds::new((0..NODES as u64).map(session).collect(), wait_for_all);
    let mut now = Time::ZERO;
    let mut serial = 0;
    // The waiters and their deadlines, and which of them wait for reservations.
    let mut waiting = BTreeMap::new();
    let mut waits = BTreeMap::new();
    let mut are_waits_over = false;
    while let Some(what) = input.byte() {
        let node = Node::new(usize::from(what) % NODES);
        let detail = what / 24;
        match what / 3 % 8 {
            0 => {
                serial += 1;
                let request = request(input.byte().unwrap_or(0), serial / 3, now);
                let named = named(&request);
                begin(&mut rounds, now, request, serial, &mut waiting);
                look(&mut rounds, &mut waiting);
                // It asks, or is gone.
                assert_no_wait(named, &waits, &waiting);
            }
            1 | 2 => answer(&mut rounds, now, node, (&REPLIES, input.byte())),
            3 => rounds.received(now, node, input.bytes(usize::from(detail))),
            4 => connect(&mut rounds, now, node, detail),
            5 => rounds.closed(now, node, NodeError::Disconnected("gone".to_owned())),
            6 => {
                now = now.after(pause(input.byte().unwrap_or(0)));
                rounds.tick(now);
            }
            _ => match detail {
                1 | 2 => answer(&mut rounds, now, node, (&QUEUE_REPLIES, input.byte())),
                3..=5 => {
                    let before = u64::from(input.byte().unwrap_or(0));
                    rounds.received(now, node, &push((serial / 3).saturating_sub(before % 16)));
                }
                6 | 7 => {
                    serial += 1;
                    let wait = wait(serial / 3, now);
                    // A waiter has one caller at a time.
                    if let Entry::Vacant(free) = waits.entry(wait.waiter) {
                        free.insert(serial);
                        waiting.insert(serial, wait.until);
                        rounds.open(now, Order::Wait(wait), serial);
                    }
                }
                8 => {
                    let waiter = Some(waiter(serial / 3)).filter(|_| serial % 2 == 1);
                    rounds.post(now, Message::EndWaits(waiter));
                    are_waits_over |= waiter.is_none();
                    look(&mut rounds, &mut waiting);
                    assert_no_wait(waiter, &waits, &waiting);
                }
                9 => answer(&mut rounds, now, node, (&SHARE_REPLIES, input.byte())),
                _ => rounds.received(now, node, PUSHES[usize::from(detail) % 2].as_bytes()),
            },
        }
        look(&mut rounds, &mut waiting);
        waits.retain(|_, serial| waiting.contains_key(serial));
        assert!(
            waits.is_empty() || !are_waits_over,
            "they wait although waits are over"
        );
        let is_late = what / 3 % 8 == 6 && waiting.values().any(|deadline| *deadline <= now);
        assert!(!is_late, "they wait too long: {waiting:?}");
    }
    end(rounds, now, waiting);
}

fn begin(
    rounds: &mut Rounds<u64>,
    now: Time,
    request: Request,
    serial: u64,
    waiting: &mut BTreeMap<u64, Time>,
) {
    if request.is_answered() {
        // For connections that are being made, it waits until then.
        waiting.insert(serial, request.connect_deadline);
        rounds.open(now, Order::Round(request), serial);
    } else {
        rounds.post(now, Message::Post(request));
    }
}

/// The waiter that a request names. No caller waits for it after that: it has asked, or is gone.
fn named(request: &Request) -> Option<Token> {
    request
        .waiter()
        .or(request.predecessor().and_then(|before| before.waiter))
}

/// Nobody waits for this waiter.
fn assert_no_wait(
    waiter: Option<Token>,
    waits: &BTreeMap<Token, u64>,
    waiting: &BTreeMap<u64, Time>,
) {
    let caller = waiter.and_then(|waiter| waits.get(&waiter));
    assert!(
        caller.is_none_or(|serial| !waiting.contains_key(serial)),
        "it waits for {waiter:?}"
    );
}

/// At the end, each round is over.
fn end(mut rounds: Rounds<u64>, now: Time, mut waiting: BTreeMap<u64, Time>) {
    rounds.tick(now.after(Duration::from_secs(60)));
    look(&mut rounds, &mut waiting);
    assert!(waiting.is_empty(), "without an end: {waiting:?}");
    assert_eq!(rounds.waiters().count(), 0);
}

/// Answers with one of these replies. Numbers begin with one, so they can match the first commands.
fn answer(
    rounds: &mut Rounds<u64>,
    now: Time,
    node: Node,
    (replies, which): (&[&str], Option<u8>),
) {
    let which = which.unwrap_or(0);
    let text = replies[usize::from(which) % replies.len()];
    let text = reply(text, i64::from(which) / replies.len() as i64);
    rounds.received(now, node, text.as_bytes());
}

/// A wait in the nodes' queue.
fn wait(serial: u64, now: Time) -> QueueWait {
    QueueWait {
        key: Arc::from(&b"kkk"[..]),
        waiter: waiter(serial),
        watches: serial % 2 == 0,
        until: request(5, serial, now).deadline,
    }
}

fn connect(rounds: &mut Rounds<u64>, now: Time, node: Node, how: u8) {
    let session = rounds.session(node);
    if !session.is_down() {
        return;
    }
    session.connecting(now, Phase::Connecting);
    if how > 0 {
        session.connected(now);
    }
    if how > 2 {
        rounds.received(now, node, b"%0\r\n");
        rounds.received(now, node, REPLIES[10 + usize::from(how % 2)].as_bytes());
    }
}

/// Takes the finished rounds, writes the output, and checks both.
fn look(rounds: &mut Rounds<u64>, waiting: &mut BTreeMap<u64, Time>) {
    while let Some((waiter, ended)) = rounds.poll() {
        assert!(
            waiting.remove(&waiter).is_some(),
            "{waiter} gets two results"
        );
        let votes = match ended {
            Ended::Round(votes) => votes,
            Ended::Wait { .. } | Ended::Until => continue,
        };
        let is_of_all = |count| count == 0 || count == NODES;
        assert!(is_of_all(votes.said.len()) && is_of_all(votes.reports.len()));
        assert!(is_of_all(votes.statuses.len()));
        assert!(
            votes
                .votes
                .queue
                .reserved
                .iter()
                .all(|node| node.index() < NODES)
        );
        let tally = votes.votes.tally;
        let count = tally.granted.len() + tally.refused.len() + tally.failed.len();
        assert_eq!(count, tally.voted().len(), "a node has one vote");
        assert!(
            tally.granted.without(votes.votes.sent).is_empty(),
            "granted without being asked"
        );
        let permit = votes.votes.permit;
        assert!(
            permit.is_none_or(|permit| permit < PERMITS),
            "there is no such permit"
        );
        assert!(
            permit.is_none() || !tally.granted.is_empty(),
            "nobody granted it"
        );
    }
    for index in 0..NODES {
        let session = rounds.session(Node::new(index));
        session.about_to_write();
        let count = session.output().len();
        session.wrote(count / 2);
        session.wrote(count - count / 2);
        let (in_flight, pending_releases) = session.load();
        // No input is long enough for more pending releases.
        assert!(in_flight <= IN_FLIGHT_MAX && pending_releases <= PENDING_MAX);
    }
}
