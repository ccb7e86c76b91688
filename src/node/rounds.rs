//! Rounds: one request to all nodes, votes back, a verdict.
//!
//! Many rounds may be open at a time, each with its own ticket, all on the same N sessions. A round is
//! over for whoever waits for it as soon as it is decided; answers that come later find their ticket
//! gone and count for nothing. One kind of round lives on after that: an extension that a majority
//! confirmed puts the key back (see [`Verb::Replant`]) on every node that answers, however late, that
//! it has lost it.
//!
//! `W` is whatever the owner needs to find the one who waits.

use super::Ticket;
use super::problem::Problem;
use super::report::{NodeAnswer, NodeReport, NodeStatus};
use super::session::{Answer, Session};
use crate::clock::Time;
use crate::engine::{Ballot, Node, NodeSet, Request, Tally, Token, Verb, Verdict, Vote};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What a round came to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Returns {
    /// The votes.
    pub ballot: Ballot,
    /// What each node said. Empty if a majority granted the request: then nobody asks.
    pub reports: Vec<NodeReport>,
    /// Two nodes that are one server.
    pub twins: Option<(Arc<str>, Arc<str>)>,
    /// Was it only about how the nodes are?
    pub is_ping: bool,
}

/// All nodes, and the rounds that are open on them.
#[derive(Debug)]
pub struct Rounds<W> {
    sessions: Vec<Session>,
    entries: Vec<Entry<W>>,
    vacant: Vec<usize>,
    finished: VecDeque<(W, Returns)>,
    wait_for_all: bool,
    /// Nodes that are the same server as one before them, and the first such pair.
    duplicates: NodeSet,
    twins: Option<(Node, Node)>,
    round_trips: Vec<Option<Duration>>,
}

#[derive(Debug)]
struct Entry<W> {
    serial: u64,
    /// `None` if there is no round in this entry.
    request: Option<Request>,
    /// `None` if the round is decided and lives on for its replanting.
    waiter: Option<W>,
    tally: Tally,
    /// Nodes to which the request was never written.
    unsent: NodeSet,
    hopeless: NodeSet,
    problems: Vec<Option<Problem>>,
}

impl<W> Rounds<W> {
    /// No rounds yet, on these nodes.
    #[must_use]
    pub fn new(sessions: Vec<Session>, wait_for_all: bool) -> Self {
        Self {
            round_trips: vec![None; sessions.len()],
            sessions,
            entries: Vec::new(),
            vacant: Vec::new(),
            finished: VecDeque::new(),
            wait_for_all,
            duplicates: NodeSet::EMPTY,
            twins: None,
        }
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.sessions.len()
    }

    /// One node's session, to connect and to write its output.
    pub fn session(&mut self, node: Node) -> &mut Session {
        &mut self.sessions[node.index()]
    }

    /// Sends a request to all nodes. What it comes to is fetched with [`poll`](Self::poll).
    pub fn open(&mut self, now: Time, request: Request, waiter: W) {
        self.forget_extensions(&request);
        let slot = self.enter(request.clone(), waiter);
        let ticket = Ticket { slot, serial: self.entries[slot].serial };
        let is_pointless = request.verb == Verb::Plant && self.twins.is_some();
        for index in 0..self.nodes() {
            let node = Node::new(index);
            let entry = &mut self.entries[slot];
            if is_pointless {
                entry.unsent.insert(node);
                entry.tally.cast(node, Vote::Failed);
            } else if request.nodes.contains(node) {
                self.sessions[index].send(now, Some(ticket), &request);
            } else {
                // Nothing was ever written to it, so it does not hold the key: no need to ask.
                entry.unsent.insert(node);
                entry.tally.cast(node, Vote::Refused);
            }
        }
        (0..self.nodes()).for_each(|index| self.collect(now, Node::new(index)));
        self.settle(now, slot, false);
    }

    /// Sends a request that nobody waits for.
    pub fn post(&mut self, now: Time, request: &Request) {
        self.forget_extensions(request);
        let nodes = self.nodes();
        for node in request.nodes.iter().take_while(|node| node.index() < nodes) {
            self.sessions[node.index()].send(now, None, request);
            self.collect(now, node);
        }
    }

    /// The next round that is over.
    pub fn poll(&mut self) -> Option<(W, Returns)> {
        self.finished.pop_front()
    }

    /// Those whose rounds are still open.
    pub fn waiters(&self) -> impl Iterator<Item = &W> {
        self.entries.iter().filter_map(|entry| entry.waiter.as_ref())
    }

    /// Bytes have come from a node.
    pub fn received(&mut self, now: Time, node: Node, bytes: &[u8]) {
        self.sessions[node.index()].received(now, bytes);
        if self.sessions[node.index()].take_greeted() {
            self.compare_identities();
        }
        self.collect(now, node);
    }

    /// A node's connection was lost, or could not be made.
    pub fn closed(&mut self, now: Time, node: Node, problem: Problem) {
        self.sessions[node.index()].closed(now, problem);
        self.collect(now, node);
    }

    /// Time has passed: ends the rounds whose deadline has come, and gives up silent connections.
    /// What has arrived must be passed on before, or answers that are there would count as missing.
    pub fn tick(&mut self, now: Time) {
        for slot in 0..self.entries.len() {
            let entry = &self.entries[slot];
            let Some(request) = &entry.request else { continue };
            if entry.waiter.is_none() {
                if request.ttl.left(request.started, now).is_none() {
                    self.leave(slot);
                }
            } else if now >= request.deadline {
                self.settle(now, slot, true);
            }
        }
        for index in 0..self.nodes() {
            self.sessions[index].tick(now);
            self.collect(now, Node::new(index));
        }
    }

    /// When [`tick`](Self::tick), or a new connection, will have something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let rounds = self.entries.iter().filter_map(|entry| {
            entry.waiter.as_ref()?;
            entry.request.as_ref().map(|request| request.deadline)
        });
        rounds.chain(self.sessions.iter().filter_map(Session::next_deadline)).min()
    }

    /// How the client stands with each node.
    #[must_use]
    pub fn status(&self, now: Time) -> Vec<NodeStatus> {
        let with_trips = self.sessions.iter().zip(&self.round_trips);
        with_trips.map(|(session, round_trip)| session.status(now, *round_trip)).collect()
    }

    /// Passes on the answers of one node's session.
    fn collect(&mut self, now: Time, node: Node) {
        while let Some(answer) = self.sessions[node.index()].poll_answer() {
            self.count(now, node, answer);
        }
    }

    fn count(&mut self, now: Time, node: Node, answer: Answer) {
        let duplicates = self.duplicates;
        let same_server = self.twins.map(|(first, _)| first);
        let Ticket { slot, serial } = answer.ticket;
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.serial != serial || entry.request.is_none() {
            // The answer to a question that nobody asks any more.
            return;
        }
        let (mut vote, mut problem) = (answer.vote, answer.problem);
        if let (true, Some(first)) = (duplicates.contains(node), same_server) {
            vote = Vote::Failed;
            let endpoint = Arc::clone(self.sessions[first.index()].name());
            problem = Some(Problem::SameServer { endpoint });
        }
        if !entry.tally.cast(node, vote) {
            return;
        }
        if !answer.was_sent {
            entry.unsent.insert(node);
        }
        if problem.as_ref().is_some_and(Problem::is_permanent) {
            entry.hopeless.insert(node);
        }
        entry.problems[node.index()] = problem;
        if entry.waiter.is_some() {
            self.round_trips[node.index()] = answer.took.or(self.round_trips[node.index()]);
            self.settle(now, slot, false);
        } else {
            self.replant(now, slot, node);
            if self.entries[slot].tally.is_complete() {
                self.leave(slot);
            }
        }
    }

    /// Ends a round for the one who waits, if it is decided or its time is over.
    fn settle(&mut self, now: Time, slot: usize, is_over: bool) {
        let entry = &self.entries[slot];
        if entry.waiter.is_none() {
            return;
        }
        let verb = entry.request.as_ref().map(|request| request.verb);
        // A ping is about every node, not about a majority of them.
        let may_be_early = !self.wait_for_all && verb != Some(Verb::Ping);
        let is_decided = entry.tally.is_complete() || (may_be_early && entry.tally.is_settled());
        if !is_over && !is_decided {
            return;
        }
        let is_confirmed = entry.tally.granted_by_majority() == Verdict::Won;
        let returns = self.returns(slot, is_over, is_confirmed);
        let entry = &mut self.entries[slot];
        self.finished.extend(entry.waiter.take().map(|waiter| (waiter, returns)));

        if verb == Some(Verb::Extend) && is_confirmed {
            self.entries[slot].tally.refused.iter().for_each(|node| self.replant(now, slot, node));
            if !self.entries[slot].tally.is_complete() {
                return;
            }
        }
        self.leave(slot);
    }

    fn returns(&mut self, slot: usize, is_over: bool, is_confirmed: bool) -> Returns {
        let entry = &mut self.entries[slot];
        let ticket = Ticket { slot, serial: entry.serial };
        let voted = entry.tally.voted();
        for (index, session) in self.sessions.iter_mut().enumerate() {
            let node = Node::new(index);
            if voted.contains(node) {
                continue;
            }
            if session.cancel(ticket) {
                entry.unsent.insert(node);
            }
            if is_over {
                entry.problems[index] = Some(Problem::TimedOut(session.phase()));
            }
        }
        let tally = entry.tally;
        let mut ballot = Ballot::new(tally);
        ballot.hopeless = entry.hopeless;
        ballot.same_server = self.twins.is_some();
        ballot.sent = NodeSet::all(tally.nodes()).without(entry.unsent);
        let problems = entry.problems.iter_mut().map(Option::take);
        let reports = if is_confirmed {
            Vec::new()
        } else {
            let endpoints = self.sessions.iter().map(Session::name);
            let nodes = endpoints.zip(problems).enumerate();
            nodes.map(|(index, (name, problem))| report(&tally, index, name, problem)).collect()
        };
        let name = |node: Node| Arc::clone(self.sessions[node.index()].name());
        let twins = self.twins.map(|(first, second)| (name(first), name(second)));
        let is_ping = entry.request.as_ref().is_some_and(|request| request.verb == Verb::Ping);
        Returns { ballot, reports, twins, is_ping }
    }

    /// Puts the key of a confirmed extension back on a node that answered that it has lost it. Not
    /// waited for and not counted: it is what the next extension finds.
    fn replant(&mut self, now: Time, slot: usize, node: Node) {
        let entry = &self.entries[slot];
        let Some(request) = entry.request.as_ref() else { return };
        let Some(ttl) = request.ttl.left(request.started, now) else { return };
        if entry.tally.refused.contains(node) {
            let request = Request { verb: Verb::Replant, ttl, ..request.clone() };
            self.sessions[node.index()].send(now, None, &request);
        }
    }

    /// After a removal, no key of its lock may be put back.
    fn forget_extensions(&mut self, request: &Request) {
        if !request.verb.is_removal() {
            return;
        }
        let token: Token = request.token;
        for slot in 0..self.entries.len() {
            let entry = &self.entries[slot];
            let lives_on = entry.waiter.is_none();
            if lives_on && entry.request.as_ref().is_some_and(|request| request.token == token) {
                self.leave(slot);
            }
        }
    }

    /// Finds which nodes are the same server as another one. Names that a node had on an earlier
    /// connection count as long as no new one is known: better to doubt a node than to count it twice.
    fn compare_identities(&mut self) {
        self.duplicates = NodeSet::EMPTY;
        self.twins = None;
        let names: Vec<_> = self.sessions.iter().map(Session::run_id).collect();
        for (second, name) in names.iter().enumerate() {
            let first = names[..second].iter().position(|other| name.is_some() && other == name);
            if let Some(first) = first {
                let second = Node::new(second);
                self.duplicates.insert(second);
                self.twins.get_or_insert((Node::new(first), second));
            }
        }
    }

    fn enter(&mut self, request: Request, waiter: W) -> usize {
        let nodes = self.nodes();
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                serial: 0,
                request: None,
                waiter: None,
                tally: Tally::new(nodes),
                unsent: NodeSet::EMPTY,
                hopeless: NodeSet::EMPTY,
                problems: vec![None; nodes],
            });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[slot];
        entry.request = Some(request);
        entry.waiter = Some(waiter);
        slot
    }

    /// Ends a round for good. Its ticket becomes worthless, and its entry free.
    fn leave(&mut self, slot: usize) {
        let nodes = self.nodes();
        let entry = &mut self.entries[slot];
        if entry.request.take().is_some() {
            entry.serial += 1;
            entry.waiter = None;
            entry.tally = Tally::new(nodes);
            entry.unsent = NodeSet::EMPTY;
            entry.hopeless = NodeSet::EMPTY;
            entry.problems.fill(None);
            self.vacant.push(slot);
        }
    }
}

fn report(tally: &Tally, index: usize, name: &Arc<str>, problem: Option<Problem>) -> NodeReport {
    let node = Node::new(index);
    let answer = if let Some(problem) = problem {
        NodeAnswer::Failed(problem)
    } else if tally.granted.contains(node) {
        NodeAnswer::Granted
    } else if tally.refused.contains(node) {
        NodeAnswer::Refused
    } else {
        NodeAnswer::Pending
    };
    NodeReport { endpoint: Arc::clone(name), answer }
}
