//! Rounds: a request to all nodes, their votes, and a verdict.
//!
//! Many rounds may be open at a time, each with its own ticket, all on the same N sessions. A round
//! ends for its waiter as soon as it is decided; later answers do not count. But a lock that a
//! majority has granted or extended is brought to the other nodes as well: see `propagation`.
//!
//! `W` identifies the waiter of a round.

mod custom;
mod deadlines;
mod entry;
mod events;
mod numbers;
mod outcome;
mod permits;
mod propagation;
#[cfg(feature = "diagnostics")]
mod statuses;
mod waits;
mod withdrawn_votes;

#[cfg(feature = "diagnostics")]
use super::Host;
use super::Phase;
use super::driver::{Conversation, Next, STRAYS_FOR, Whereabouts};
#[cfg(feature = "groups")]
use super::group::history::History;
use super::node_error::NodeError;
use super::report::{ChangeRecorder, NodeChange, NodeState};
use super::session::{Answer, SameServer, Session};
use super::shared_request::{LastRequests, SharedRequest};
use crate::engine::{Node, QueueWait, Request, Token, Vote};
use crate::time::Time;
use entry::Entry;
pub use outcome::{Ended, RoundOutcome};
use propagation::Propagation;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use waits::Waits;

/// What a caller waits for.
#[derive(Debug)]
pub enum Order {
    /// The outcome of a round.
    Round(Request),
    /// The end of a wait in the nodes' queue: a majority reserves the lock, there is something to
    /// ask, or the time has come. It may watch the lock's key, and those replies have no proof.
    Wait(QueueWait),
    /// This time, or the end of all calls: nothing is asked.
    Until(Time),
}

/// What has no outcome.
#[derive(Debug)]
pub enum Message {
    /// Send this request.
    Post(Request),
    /// End the waits of one waiter in the nodes' queue, until it leaves or its turn ends; or of
    /// all, now and from now on, and those for a time, and those of rounds for silent nodes.
    EndWaits(Option<Token>),
    /// Forget this waiter, about which no request follows.
    Leave(Token),
}

/// All nodes, and the rounds that are open on them.
#[derive(Debug)]
pub struct Rounds<W> {
    sessions: Vec<Session>,
    last_requests: LastRequests,
    entries: Vec<Entry<W>>,
    vacant: Vec<usize>,
    /// The number of entries with a waiter.
    awaited: usize,
    /// Those of attempts and of waiters that enter the queue, by token: thousands may be late at a
    /// time, each is undone, and none of these removals looks at the others.
    attempts: BTreeSet<(Token, usize)>,
    propagation: Propagation,
    /// Is there a round that went on beyond its deadline, or after a majority had granted a lock?
    has_overtime: bool,
    /// No entry with a waiter has a deadline before this.
    ends_at: Time,
    finished: VecDeque<(W, Ended)>,
    wait_for_all: bool,
    /// The waiters in the nodes' queues.
    waits: Waits<W>,
    /// What follows on rounds that are over, while there are others with a waiter: see `custom`.
    follow_ups: Vec<SharedRequest>,
    /// Records the changes of nodes, if [`watch`](Self::watch) was called.
    watch: Option<ChangeRecorder>,
}

impl<W> Rounds<W> {
    /// These nodes, without rounds.
    pub fn new(sessions: Vec<Session>, wait_for_all: bool) -> Self {
        Self {
            waits: Waits::new(sessions.len()),
            sessions,
            last_requests: LastRequests::default(),
            entries: Vec::new(),
            vacant: Vec::new(),
            awaited: 0,
            attempts: BTreeSet::new(),
            propagation: Propagation::default(),
            has_overtime: false,
            ends_at: Time::ZERO,
            finished: VecDeque::new(),
            follow_ups: Vec::new(),
            wait_for_all,
            watch: None,
        }
    }

    /// One node's session, to connect and to write its output.
    pub fn session(&mut self, node: Node) -> &mut Session {
        &mut self.sessions[node.index()]
    }

    /// Sends a request to all nodes. [`poll`](Self::poll) returns the result.
    fn begin(&mut self, now: Time, mut request: Request, waiter: W) {
        request.nodes = request.nodes.union(self.forget_extensions(&request));
        let request = self.last_requests.share(request);
        self.note_waiter(&request);
        let is_pointless = request.is_claim() && SameServer::is_certain(&self.sessions);
        let round = self.vacancy();
        self.await_until(request.deadline);
        let is_kept = request.is_extension() || request.is_turn() || request.share().is_some();
        let token = request
            .token()
            .filter(|_| is_kept && request.is_to_restore());
        self.propagation
            .kept
            .extend(token.map(|token| (token, round)));
        let entry = &mut self.entries[round];
        let ticket = entry.ticket(round);
        entry.waiter = Some(waiter);
        for (index, session) in self.sessions.iter_mut().enumerate() {
            let node = Node::new(index);
            if is_pointless {
                entry.unsent.insert(node);
                entry.tally.cast(node, Vote::Failed);
            } else if request.nodes.contains(node) {
                session.send(now, Some(ticket), request.clone());
            } else {
                // No request for this lock was ever written to the node, so it has no such key.
                entry.unsent.insert(node);
                entry.tally.cast(node, Vote::Refused);
            }
        }
        entry.request = Some(request);
        let attempt = entry.attempt().map(|token| (token, round));
        self.attempts.extend(attempt);
        if !self.follow_ups.is_empty() {
            self.send_follow_ups(now);
        }
        (0..self.nodes()).for_each(|index| self.collect(now, Node::new(index)));
        self.settle(now, round, false);
    }

    /// Sends a request without a waiter.
    fn send(&mut self, now: Time, mut request: Request) {
        self.end_attempt(now, &request);
        request.nodes = request.nodes.union(self.forget_extensions(&request));
        let request = self.last_requests.share(request);
        self.note_waiter(&request);
        let nodes = self.nodes();
        for node in request.nodes.iter().take_while(|node| node.index() < nodes) {
            self.sessions[node.index()].send(now, None, request.clone());
            self.collect(now, node);
        }
        if !self.follow_ups.is_empty() {
            self.send_follow_ups(now);
        }
    }

    /// The waiters of the open rounds, and the callers that wait in the nodes' queue or for a time.
    pub fn waiters(&self) -> impl Iterator<Item = &W> {
        let rounds = self.entries.iter();
        let awaited = rounds.filter_map(|entry| entry.waiter.as_ref());
        awaited.chain(self.waits.callers())
    }

    fn count(&mut self, now: Time, node: Node, answer: Answer) {
        let round = answer.ticket.round;
        let is_same =
            |entry: &Entry<W>| entry.request.is_some() && entry.ticket(round) == answer.ticket;
        if !self.entries.get(round).is_some_and(is_same) {
            // The round is over.
            return;
        }
        #[cfg(feature = "diagnostics")]
        let took = answer.took;
        let vote = answer.reply.vote;
        let entry = &mut self.entries[round];
        if !entry.count(node, answer) {
            return self.note_restoration(now, round, node, vote);
        }
        if entry.waiter.is_some() {
            #[cfg(feature = "diagnostics")]
            self.sessions[node.index()].note_round_trip(took);
            if entry.note_majority(now) {
                self.ends_at = self.ends_at.min(now);
            }
            self.settle(now, round, false);
        } else if entry.is_followed() {
            self.follow_on(now, round);
        } else {
            self.note_late_vote(now, round, node);
        }
    }

    /// Ends a round for its waiter if it is decided, or with `is_late` in any case.
    fn settle(&mut self, now: Time, round: usize, is_late: bool) {
        let entry = &mut self.entries[round];
        let is_over = is_late || entry.is_decided(self.wait_for_all, &self.sessions);
        if entry.waiter.is_none() || !is_over || !is_late && self.waits_for_others(now, round) {
            return;
        }
        let entry = &mut self.entries[round];
        entry.close(round, &mut self.sessions, is_late);
        let mut outcome = entry.outcome(now, &self.sessions);
        if let Some(place) = entry.queue_entry() {
            self.waits.not_answered(&place.waiter, entry.tally.failed);
        }
        if let Some(token) = entry.attempt() {
            self.attempts.remove(&(token, round));
        }
        if entry.queue_entry().is_some() || !entry.tally.refused.is_empty() {
            outcome.votes.queue.waiters = self.waits.count() + self.attempts.len();
        }
        if let Some(waiter) = entry.waiter.take() {
            self.finished.push_back((waiter, Ended::Round(outcome)));
        }
        self.awaited -= 1;
        match self.entries[round].is_followed() {
            true => self.follow_on(now, round),
            false => self.propagate(now, round),
        }
        if self.awaited == 0 && !self.follow_ups.is_empty() {
            self.send_follow_ups(now);
        }
    }
}

impl<W> Conversation for Rounds<W> {
    type Order = Order;
    type Message = Message;
    type Outcome = Ended;
    type Waiter = W;

    fn nodes(&self) -> usize {
        self.sessions.len()
    }

    fn is_down(&self, node: Node) -> bool {
        self.sessions[node.index()].is_down()
    }

    fn wants_connection(&self, node: Node, now: Time) -> bool {
        self.sessions[node.index()].wants_connection(now)
    }

    fn connecting(&mut self, node: Node, now: Time, phase: Phase) {
        self.session(node).connecting(now, phase);
    }

    fn phase(&self, node: Node) -> Phase {
        self.sessions[node.index()].phase()
    }

    fn connected(&mut self, node: Node, now: Time) {
        self.session(node).connected(now);
    }

    #[cfg(feature = "diagnostics")]
    fn leads_to(&mut self, node: Node, host: Option<Host>) {
        self.session(node).leads_to(host);
    }

    fn secure_scheme(&self) -> &'static str {
        "rediss"
    }

    fn located(&mut self, node: Node, epoch: u64, asked_at: Time) {
        self.session(node).located(epoch, asked_at);
    }

    fn announced(&mut self, node: Node, place: Arc<str>) {
        self.session(node).announced(place);
    }

    fn looks_at(&self, node: Node) -> Option<Time> {
        self.sessions[node.index()].looks_at()
    }

    fn looking(&mut self, node: Node, now: Time) {
        self.session(node).looking(now);
    }

    fn named(
        &mut self,
        node: Node,
        now: Time,
        epoch: u64,
        asked_at: Time,
        it_is: Whereabouts,
    ) -> bool {
        let is_left = self.session(node).named(now, epoch, asked_at, it_is);
        self.collect(now, node);
        is_left
    }

    fn inquires_at(&self, node: Node) -> Option<Time> {
        self.sessions[node.index()].inquires_at()
    }

    #[cfg(feature = "groups")]
    fn inquiring(&mut self, node: Node, now: Time) {
        self.session(node).inquiring(now);
    }

    #[cfg(feature = "groups")]
    fn heard(&mut self, node: Node, now: Time, server: &History, master: &History) {
        self.session(node).heard(now, server, master);
    }

    fn about_to_write(&mut self, node: Node) {
        self.session(node).about_to_write();
    }

    fn output(&self, node: Node) -> &[u8] {
        self.sessions[node.index()].output()
    }

    fn wrote(&mut self, node: Node, count: usize) {
        self.session(node).wrote(count);
    }

    fn received(&mut self, now: Time, node: Node, bytes: &[u8]) {
        self.sessions[node.index()].received(now, bytes);
        self.collect(now, node);
    }

    fn closed(&mut self, now: Time, node: Node, problem: NodeError) {
        self.session(node).closed(now, problem);
        self.collect(now, node);
    }

    fn open(&mut self, now: Time, order: Order, waiter: W) {
        match order {
            Order::Round(request) => self.begin(now, request, waiter),
            Order::Wait(wait) => self.wait(now, &wait, waiter),
            Order::Until(time) => self.waits.pause(now, time, waiter),
        }
    }

    fn post(&mut self, now: Time, message: Message) {
        match message {
            Message::Post(request) => self.send(now, request),
            Message::EndWaits(waiter) => {
                self.waits.end(waiter);
                if waiter.is_none() {
                    self.sessions.iter_mut().for_each(Session::end_patience);
                    self.ends_at = now;
                }
            }
            Message::Leave(waiter) => self.leave(&waiter),
        }
    }

    fn must_be_read_before(&self, node: Node, next: Next<'_, Self>) -> Option<Duration> {
        match next {
            Next::Order(Order::Round(request)) | Next::Message(Message::Post(request)) => {
                self.sessions[node.index()].must_be_read_before(request)
            }
            Next::Order(Order::Wait(_)) => Some(STRAYS_FOR),
            Next::Order(Order::Until(_))
            | Next::Message(Message::EndWaits(_) | Message::Leave(_)) => None,
        }
    }

    fn is_crowded(&self, next: Next<'_, Self>) -> bool {
        match next {
            Next::Order(Order::Round(request)) | Next::Message(Message::Post(request)) => self
                .sessions
                .iter()
                .any(|session| session.is_crowded(request)),
            _ => false,
        }
    }

    fn poll(&mut self) -> Option<(W, Ended)> {
        self.finished.pop_front().or_else(|| self.waits.poll())
    }

    fn next_waiter(&self) -> Option<&W> {
        self.waiters().next()
    }

    fn next_deadline(&self) -> Option<Time> {
        // `ends_at` may be the deadline of a round that is over. Then `tick` ends nothing.
        let rounds = (self.awaited > 0).then_some(self.ends_at);
        let of_sessions = self.sessions.iter().filter_map(Session::next_deadline);
        rounds
            .into_iter()
            .chain(self.waits.next_end())
            .chain(self.propagation.retries_at)
            .chain(of_sessions)
            .min()
    }

    fn tick(&mut self, now: Time) {
        self.end_rounds(now);
        self.waits.end_due(now);
        self.retry_due(now);
        for index in 0..self.nodes() {
            self.sessions[index].tick(now);
            self.collect(now, Node::new(index));
            self.note_silence(now, Node::new(index));
        }
    }

    fn is_draining(&mut self, now: Time) -> bool {
        let mut sessions = self.sessions.iter();
        sessions.any(|session| session.has_removals(now)) || self.awaits_follow_ups(now)
    }
}

// Records changes of nodes for events. Without a listener, each of these functions only checks an
// `Option`.

impl<W> Rounds<W> {
    /// Records the changes of nodes from now on. A node is slow after `node_timeout` of silence.
    pub fn watch(&mut self, node_timeout: Duration) {
        self.watch = Some(ChangeRecorder::new(node_timeout));
    }

    pub fn poll_change(&mut self) -> Option<NodeChange> {
        self.watch.as_mut()?.pop()
    }

    /// The node has answered the greeting, or it is known anew whether it is the same server as an
    /// earlier node: then none of its answers counts, as if it was down.
    fn note_greeting(&mut self, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &self.sessions[node.index()];
            match session.same_server() {
                Some(error) => watch.lost(node, session.name(), &error),
                None => watch.greeted(node, session.name()),
            }
        }
    }

    fn note_news(&mut self, node: Node, state: NodeState) {
        if let Some(watch) = &mut self.watch {
            watch.record(self.sessions[node.index()].name(), state);
        }
    }

    fn note_answer(&mut self, node: Node, answer: &Answer) {
        if let (Some(watch), Some(took)) = (&mut self.watch, answer.took) {
            watch.answered(node, took);
        }
    }

    fn note_loss(&mut self, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &self.sessions[node.index()];
            if let Some(problem) = session.loss() {
                watch.lost(node, session.name(), problem);
            }
        }
    }

    /// All bytes that have arrived must be processed first.
    fn note_silence(&mut self, now: Time, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &self.sessions[node.index()];
            if let Some(since) = session.unanswered_since() {
                watch.silent(node, session.name(), now.since(since));
            }
        }
    }
}

#[cfg(test)]
mod tests;
