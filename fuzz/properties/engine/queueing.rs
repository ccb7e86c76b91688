//! Acquiring a lock by a client that queues. Properties:
//!
//! - each attempt and each turn has the token that was drawn for it;
//! - what an attempt or a turn may have left on the nodes is withdrawn, by an undo or with a
//!   request about the queue, before anything else is asked and before the end, unless the lock
//!   is held;
//! - a waiter stays the same until it has left, tells the largest number that it was given, and
//!   takes its turn only when a majority of the nodes reserves the lock for it;
//! - every request is about the share that is wanted, and the lock has the permit for which a
//!   majority voted;
//! - after the end no waiter is left in a queue, unless its name is in the lock, nor that of a
//!   lock that was handed off;
//! - a single attempt never queues, and no round continues beyond the caller's deadline;
//! - it ends once no node answers any more.

use super::votes::{is_like, is_majority, share_of, token_of, ttl_of, votes_of};
use super::{Client, attributes, duration, predecessor, wanted};
use redlatch_protocol::engine::{
    Acquire, Acquired, Before, Claim, Command, Entropy, HeldLock, Input, Node, NodeSet, QueueEntry,
    QueueWait, Request, Share, Step, Token, Ttl, Votes, Wait,
};
use redlatch_protocol::time::Time;
use std::collections::BTreeSet;
use std::sync::Arc;

/// An operation, as seen from outside.
struct Waiter {
    wait: Wait,
    ttl: Ttl,
    end: Time,
    /// The share that is wanted, if it is not all of the lock, and the permit in the last votes.
    share: Option<Share>,
    permit: Option<u32>,
    /// The random numbers of the attempt that has begun.
    begun: Option<Entropy>,
    has_begun: bool,
    /// The tokens that were sent and not withdrawn.
    sent: BTreeSet<Token>,
    /// The waiter in the queue, if there is one, and its number.
    name: Option<(Token, u64)>,
    /// The nodes that reserved the lock when its last wait ended.
    reserved: NodeSet,
    predecessor: Option<Token>,
    /// The waiter of the predecessor, if the attempt is a handoff: it may still be queued.
    inherited: Option<Token>,
}

pub(super) fn check(client: &mut Client<'_>, held: Option<HeldLock>) {
    let mut rules = (*client.rules).clone();
    rules.waiter_lease = Some(client.ttl());
    let what = client.byte();
    let ttl = client.ttl();
    let wait = match what % 4 {
        0 => Wait::No,
        1 | 2 => Wait::Forever,
        _ => Wait::Until(client.now.after(duration(client.byte()))),
    };
    let share = wanted(what);
    let machine = Acquire::new(Arc::new(rules), Arc::from(&b"key"[..]), ttl, wait);
    let mut machine = machine.with(attributes(share));
    let predecessor = predecessor(what, held);
    if let Some(held) = &predecessor {
        machine = machine.taking_over(held.clone());
    }
    let mut waiter = Waiter {
        wait,
        ttl,
        end: Time::MAX,
        share,
        permit: None,
        begun: None,
        has_begun: false,
        sent: BTreeSet::new(),
        name: None,
        reserved: NodeSet::EMPTY,
        predecessor: predecessor.map(|held| held.token),
        inherited: None,
    };
    let mut steps_left = 8 * client.input.0.len() + 64;
    while waiter.step(client, &mut machine) {
        steps_left = steps_left.checked_sub(1).expect("it ends");
    }
}

impl Waiter {
    /// One step. Returns whether there will be another.
    fn step(&mut self, client: &mut Client<'_>, machine: &mut Acquire) -> bool {
        let has_place = self.name.is_some_and(|(_, number)| number > 0);
        assert!(
            has_place || machine.place().is_none(),
            "a place that no majority gave"
        );
        match machine.poll() {
            Step::Send(request) => self.sent(client, machine, &request),
            Step::Wait(wait) => self.waits(client, machine, &wait),
            Step::Pause(until) => {
                client.now = client.now.max(until);
                self.reserved = NodeSet::EMPTY;
                self.attempt(client, machine);
            }
            Step::Done(outcome) => {
                self.check_end(client, outcome);
                return false;
            }
        }
        true
    }

    /// Its pause has ended, or a majority of the nodes reserves the lock.
    fn attempt(&mut self, client: &mut Client<'_>, machine: &mut Acquire) {
        assert!(self.sent.is_empty(), "a token is left");
        if client.byte() == 255 {
            let is_over = client.byte() & 1 == 0;
            if is_over {
                machine.handle(client.now, Input::NoEntropy);
            } else {
                machine.handle(client.now, Input::Cancelled);
            }
        } else {
            let draw = client.draw();
            self.begin(client);
            self.begun = Some(draw);
            machine.handle(client.now, Input::Attempt(draw));
        }
    }

    /// The first attempt decides whether there are others, and when the wait ends.
    fn begin(&mut self, client: &Client<'_>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let is_single = match self.wait {
            Wait::No => true,
            Wait::Until(time) => time <= client.now,
            Wait::Forever => false,
        };
        let round_end = client.now.after(client.rules.node_timeout);
        self.end = match self.wait {
            Wait::Until(time) if !is_single => time,
            _ if is_single => round_end,
            _ => Time::MAX,
        };
        self.wait = if is_single { Wait::No } else { self.wait };
    }

    fn sent(&mut self, client: &mut Client<'_>, machine: &mut Acquire, request: &Request) {
        if request.is_removal() {
            assert!(!request.is_answered());
            return self.undone(client, request);
        }
        assert!(
            request.deadline <= self.end.max(request.started),
            "beyond the caller's deadline"
        );
        assert!(request.started <= client.now && request.nodes == NodeSet::all(client.rules.nodes));
        match &request.command {
            Command::Claim(Claim {
                before: Before::Turn(waiter),
                ..
            }) => {
                assert_eq!(self.name.map(|(name, _)| name), Some(*waiter));
                assert!(
                    self.name.is_some_and(|(_, number)| number > 0),
                    "it has no place yet"
                );
                assert!(
                    is_majority(self.reserved, client.rules.nodes),
                    "out of turn"
                );
                self.reserved = NodeSet::EMPTY;
                self.drawn(request);
            }
            Command::Claim(_) => {
                assert!(self.name.is_none(), "a try from within the queue");
                self.drawn(request);
            }
            Command::Queue(entry) => self.queued(entry),
            _ => panic!("{request:?}"),
        }
        client.pass_time();
        let mut votes = votes_of(client, request);
        self.permit = votes.permit;
        if request.queue_entry().is_some() {
            self.answered(client, request, &mut votes);
        }
        machine.handle(client.now, Input::Votes(votes));
        // Too few nodes may have let it in; then its removal is the next step.
    }

    /// An attempt or a turn.
    fn drawn(&mut self, request: &Request) {
        let draw = self.begun.take().expect("no attempt has begun");
        assert_eq!((token_of(request), ttl_of(request)), (draw.token, self.ttl));
        // In turns after the first, the nodes look for a permit from the same one on.
        let first = share_of(request).and_then(Share::permit);
        assert!(
            is_like(share_of(request), self.share),
            "another share is taken"
        );
        assert!(
            first.is_none() || request.is_turn(),
            "each node begins by itself"
        );
        assert!(first.is_none_or(|first| share_of(request).is_some_and(|it| first < it.permits())));
        assert!(self.sent.is_empty(), "the attempt before was not withdrawn");
        self.sent.insert(draw.token);
        self.inherited = request.predecessor().and_then(|before| before.waiter);
    }

    fn queued(&mut self, entry: &QueueEntry) {
        // One that nodes gave different permits does: there they say which are free.
        let is_permit = self.share.is_some_and(|share| share.permits() > 0);
        assert!(
            self.wait != Wait::No || is_permit,
            "a single attempt queues"
        );
        assert!(
            is_like(entry.lock.share(), self.share),
            "nodes may have granted any permit"
        );
        let withdrawn = entry.lock.token;
        self.sent.remove(&withdrawn);
        assert!(self.sent.is_empty(), "another attempt is not withdrawn");
        match self.name {
            None => {
                assert_eq!((entry.number, entry.waiter), (0, withdrawn));
                self.name = Some((entry.waiter, 0));
            }
            Some(expected) => assert_eq!((entry.waiter, entry.number), expected),
        }
    }

    /// What the nodes answer to a waiter.
    fn answered(&mut self, client: &mut Client<'_>, request: &Request, votes: &mut Votes) {
        let told = request.queue_entry().map_or(0, |entry| entry.number);
        let byte = client.byte();
        let mut reserved = NodeSet::EMPTY;
        for (index, node) in votes.tally.granted.iter().enumerate() {
            let number = told.max(1 + u64::from(byte >> (index % 8) & 1));
            votes.counters.note(node, number, true);
            if byte & 64 != 0 {
                reserved.insert(node);
            }
            if byte & 128 != 0 {
                votes.queue.listening.insert(node);
            }
        }
        votes.queue.place = u64::from(client.byte() % 64);
        votes.queue.left = Some(duration(client.byte())).filter(|left| !left.is_zero());
        votes.queue.reserved = reserved;
        votes.queue.without = if byte == 3 {
            votes.tally.failed
        } else {
            NodeSet::EMPTY
        };
        if is_majority(votes.tally.granted, client.rules.nodes) {
            if let Some((_, number)) = self.name.as_mut().filter(|(_, number)| *number == 0) {
                let is_in_time = client.now < self.end && !votes.same_server;
                let usable = NodeSet::all(client.rules.nodes).without(votes.permanent_failures);
                if is_in_time && is_majority(usable, client.rules.nodes) {
                    *number = votes.counters.largest;
                }
            }
        }
    }

    /// A wait ends with a majority of reservations, or when its time has come.
    fn waits(&mut self, client: &mut Client<'_>, machine: &mut Acquire, wait: &QueueWait) {
        assert_eq!(self.name.map(|(name, _)| name), Some(wait.waiter));
        assert!(self.sent.is_empty(), "a token is left");
        assert!(
            wait.until <= self.end.max(client.now),
            "beyond the caller's deadline"
        );
        let byte = client.byte();
        let nodes = (0..client.rules.nodes).map(Node::new);
        self.reserved = nodes
            .filter(|node| byte >> (node.index() % 8) & 1 != 0)
            .collect();
        let until = wait.until.max(client.now);
        if is_majority(self.reserved, client.rules.nodes) {
            client.pass_time();
            client.now = client.now.min(until);
            self.attempt(client, machine);
        } else {
            client.now = until;
            machine.handle(client.now, Input::NotCalled);
        }
    }

    fn undone(&mut self, client: &Client<'_>, undo: &Request) {
        let token = token_of(undo);
        if self.predecessor == Some(token) {
            self.predecessor = None;
            return;
        }
        assert!(is_like(share_of(undo), self.share), "{undo:?}");
        self.sent.remove(&token);
        if let Some(waiter) = undo.waiter() {
            assert_eq!(
                self.name.take().map(|(name, _)| name),
                Some(waiter),
                "who leaves?"
            );
            assert_eq!(
                undo.nodes,
                NodeSet::all(client.rules.nodes),
                "it may be anywhere"
            );
            self.reserved = NodeSet::EMPTY;
        }
    }

    fn check_end(&mut self, client: &mut Client<'_>, outcome: Acquired) {
        if let Acquired::Held(held) = outcome {
            assert!(self.sent.remove(&held.token), "a token that was not sent");
            let name = self.name.take().map(|(name, _)| name);
            assert_eq!(held.waiter, name.or(self.inherited));
            let share = held.id().share();
            assert!(
                is_like(share, self.share),
                "{share:?} instead of {:?}",
                self.share
            );
            assert_eq!(share.and_then(Share::permit), self.permit);
            let valid_until = client.valid_until(held.since, self.ttl);
            assert_eq!(held.valid_until, valid_until);
            let left = valid_until.since(client.now);
            assert!(client.now < valid_until && left >= client.rules.min_validity);
            client.held = Some(held);
        }
        assert!(self.sent.is_empty(), "left on the nodes: {:?}", self.sent);
        assert!(self.name.is_none(), "left in the queue: {:?}", self.name);
    }
}
