//! The servers of a ZooKeeper ensemble, of which one is connected at a time: the [`Conversation`]
//! of a session, which has all locks of a client, and what is reported about each server. It
//! decides nothing about locks: [`LockTable`] knows what to write and what the replies mean.

use crate::clock::Time;
use crate::engine::{Node, Token};
use crate::net::change_queue::ChangeQueue;
use crate::net::follower::Follower;
use crate::node::{ChangeRecorder, Conversation, NodeAnswer, NodeError, NodeReport};
use crate::node::{NodeState, Phase};
use redlatch_zookeeper::contender::ContenderPlan;
use redlatch_zookeeper::lock_table::{LockTable, Loss, Outcome};
use redlatch_zookeeper::message::{EnsembleError, EnsembleRequest, Remedy};
use redlatch_zookeeper::session::Problem;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Called when a lock that was held is lost.
pub(crate) type OnLoss = Box<dyn Fn(Loss) + Send>;

/// What a caller waits for, and when it expects the outcome at the latest.
pub(crate) struct LockOrder {
    pub(crate) kind: OrderKind,
    pub(crate) until: Time,
}

/// See the methods of [`LockTable`].
pub(crate) enum OrderKind {
    /// Contend for a lock, to be held for so long once it is granted.
    Contend(Token, Box<ContenderPlan>, Duration),
    /// Wait on for a lock that was contended for.
    Wait(Token),
    /// A held lock changes hands within this client, and has another end of its own.
    TakeOver(Token, Time),
    /// Is it held? Then until this time at least.
    Check(Token, Time),
    Release(Token),
    Ask(Vec<EnsembleRequest>),
}

impl OrderKind {
    /// The lock that is waited for.
    pub(crate) fn waiter(&self) -> Option<Token> {
        match self {
            Self::Contend(token, ..) | Self::Wait(token) => Some(*token),
            _ => None,
        }
    }
}

/// What needs no outcome.
pub(crate) enum LockMessage {
    /// Give a lock up, or the wait for it.
    GiveUp(Token),
    /// A lock that was given up stays until this time.
    LetExpire(Token, Time),
    /// Tell of the loss of this lock; at once if it is not held any more.
    Watch(Token, OnLoss),
    /// End the waits of one caller, or of all, now and from now on.
    EndWaits(Option<Token>),
}

/// The locks of a client, and who waits for what of them.
type ClientLocks = LockTable<Arc<Follower<Outcome>>>;

/// The locks of a client, and the servers that are asked about them.
pub(super) struct Servers {
    table: ClientLocks,
    /// How many servers there are.
    nodes: usize,
    /// Whom to tell of the loss of a lock.
    on_loss: HashMap<Token, OnLoss>,
    /// What each server did last, for errors. Other threads read it.
    reports: Arc<Mutex<Vec<NodeReport>>>,
    /// The timeout of the session that was granted last. Other threads read it.
    granted_ms: Arc<AtomicU64>,
    /// Where to put changes of the servers' states, if there is a listener.
    changes: Option<Arc<ChangeQueue>>,
    recorder: ChangeRecorder,
    /// The server of the connection that was last looked at, and how far that had come.
    seen: Option<(Node, Phase)>,
    phase: Phase,
    /// Why the socket of the current connection was closed.
    problem: Option<NodeError>,
}

impl Servers {
    pub(super) fn new(
        table: ClientLocks,
        reports: Arc<Mutex<Vec<NodeReport>>>,
        granted_ms: Arc<AtomicU64>,
        changes: Option<Arc<ChangeQueue>>,
    ) -> Self {
        let nodes = reports.lock().unwrap_or_else(PoisonError::into_inner).len();
        // No server is slow: one that is silent is left.
        let recorder = ChangeRecorder::new(Duration::MAX);
        Self {
            table,
            nodes,
            on_loss: HashMap::new(),
            reports,
            granted_ms,
            changes,
            recorder,
            seen: None,
            phase: Phase::Connecting,
            problem: None,
        }
    }

    /// Notes what has become of the connection, and tells of lost locks: a thread that gets an
    /// outcome must not take a lost lock for held.
    pub(super) fn tell(&mut self) {
        self.follow_session();
        while let Some((token, loss)) = self.table.poll_loss() {
            if let Some(on_loss) = self.on_loss.remove(&token) {
                on_loss(loss);
            }
        }
    }

    /// Notes what has become of the connection since the last call.
    fn follow_session(&mut self) {
        self.note_session_loss();
        let session = &self.table.session;
        let now = (!session.is_down()).then(|| {
            let phase = if session.is_ready() {
                Phase::Answering
            } else {
                self.phase
            };
            (Node::new(session.server()), phase)
        });
        if now == self.seen {
            return;
        }
        let before = std::mem::replace(&mut self.seen, now);
        let node_now = now.map(|(node, _)| node);
        if let Some((node, phase)) = before.filter(|(node, _)| node_now != Some(*node)) {
            let problem = self.table.session.problem();
            let error = self.problem.take().unwrap_or_else(|| error(problem, phase));
            let url = self.report(node, NodeAnswer::Failed(error.clone()));
            self.recorder.lost(node, &url, &error);
        }
        match now {
            Some((node, Phase::Answering)) => {
                let granted = self.table.session.timeout().unwrap_or_default();
                let millis = u64::try_from(granted.as_millis()).unwrap_or(u64::MAX);
                self.granted_ms.store(millis, Ordering::Relaxed);
                let url = self.report(node, NodeAnswer::Answered);
                self.recorder.greeted(node, &url);
            }
            Some((node, phase)) if !self.has_said_why(node) => {
                self.report(node, NodeAnswer::Failed(NodeError::TimedOut(phase)));
            }
            _ => {}
        }
        self.tell_changes();
    }

    /// The server of the last connection has told that the session has ended.
    fn note_session_loss(&mut self) {
        if !self.table.take_session_loss() {
            return;
        }
        let node = self
            .seen
            .map_or(Node::new(self.table.session.server()), |(node, _)| node);
        let url = Arc::clone(&self.lock_reports()[node.index()].url);
        self.recorder.record(&url, NodeState::SessionLost);
        self.tell_changes();
    }

    /// Did the last connection to this server fail for a reason that says more than how far another
    /// one has come?
    fn has_said_why(&self, node: Node) -> bool {
        match &self.lock_reports()[node.index()].answer {
            NodeAnswer::Failed(error) => !matches!(error, NodeError::TimedOut(_)),
            _ => false,
        }
    }

    /// Notes what a server did last. Returns its URL.
    fn report(&self, node: Node, answer: NodeAnswer) -> Arc<str> {
        let report = &mut self.lock_reports()[node.index()];
        report.answer = answer;
        Arc::clone(&report.url)
    }

    fn tell_changes(&mut self) {
        while let Some(change) = self.recorder.pop() {
            if let Some(changes) = &self.changes {
                changes.push(change);
            }
        }
    }

    fn lock_reports(&self) -> MutexGuard<'_, Vec<NodeReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_current(&self, node: Node) -> bool {
        self.table.session.server() == node.index()
    }
}

impl Conversation for Servers {
    type Order = LockOrder;
    type Message = LockMessage;
    type Outcome = Outcome;
    type Waiter = Arc<Follower<Outcome>>;

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn is_down(&self, node: Node) -> bool {
        !self.is_current(node) || self.table.session.is_down()
    }

    fn wants_connection(&self, node: Node, now: Time) -> bool {
        self.is_current(node) && self.table.session.wants_connection(now)
    }

    fn connecting(&mut self, _: Node, now: Time, phase: Phase) {
        self.phase = phase;
        if self.table.session.is_down() {
            self.table.session.connecting(now);
        }
        self.follow_session();
    }

    fn phase(&self, _: Node) -> Phase {
        if self.table.session.is_ready() {
            Phase::Answering
        } else {
            self.phase
        }
    }

    fn connected(&mut self, _: Node, now: Time) {
        self.phase = Phase::Greeting;
        self.table.session.connected(now);
        self.follow_session();
    }

    fn secure_scheme(&self) -> &'static str {
        "zks"
    }

    fn output(&self, node: Node) -> &[u8] {
        if self.is_down(node) {
            &[]
        } else {
            self.table.session.output()
        }
    }

    fn wrote(&mut self, _: Node, count: usize) {
        self.table.session.wrote(count);
    }

    fn received(&mut self, now: Time, node: Node, bytes: &[u8]) {
        if !self.is_down(node) {
            self.table.session.received(now, bytes);
            self.follow_session();
            self.table.settle(now);
        }
    }

    fn closed(&mut self, now: Time, node: Node, problem: NodeError) {
        if !self.is_down(node) {
            self.problem = Some(problem);
            self.table.session.closed(now, Problem::Disconnected);
            self.follow_session();
            self.table.settle(now);
        }
    }

    fn open(&mut self, now: Time, order: LockOrder, follower: Arc<Follower<Outcome>>) {
        let table = &mut self.table;
        let until = order.until;
        match order.kind {
            OrderKind::Contend(token, plan, hold) => {
                table.contend(now, token, *plan, hold, (follower, until));
            }
            OrderKind::Wait(token) => table.wait(now, token, until, follower),
            OrderKind::TakeOver(token, end) => table.take_over(now, token, end, follower),
            OrderKind::Check(token, end) => table.check(now, token, end, until, follower),
            OrderKind::Release(token) => {
                self.on_loss.remove(&token);
                table.release(now, token, until, follower);
            }
            OrderKind::Ask(requests) => table.ask(now, requests, until, follower),
        }
    }

    fn post(&mut self, now: Time, message: LockMessage) {
        let table = &mut self.table;
        match message {
            LockMessage::GiveUp(token) => {
                self.on_loss.remove(&token);
                table.give_up(now, token);
            }
            LockMessage::LetExpire(token, end) => {
                self.on_loss.remove(&token);
                table.let_expire(now, token, end);
            }
            LockMessage::Watch(token, on_loss) if table.is_held(&token) => {
                self.on_loss.insert(token, on_loss);
            }
            LockMessage::Watch(_, on_loss) => on_loss(Loss::Gone),
            LockMessage::EndWaits(token) => table.end_waits(token),
        }
    }

    fn poll(&mut self) -> Option<(Arc<Follower<Outcome>>, Outcome)> {
        self.table.poll()
    }

    fn next_waiter(&self) -> Option<&Arc<Follower<Outcome>>> {
        self.table.waiters().next()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.table.next_deadline()
    }

    fn tick(&mut self, now: Time) {
        self.table.tick(now);
    }

    fn close(&mut self, now: Time) {
        self.table.close(now);
    }

    fn is_draining(&mut self, _: Time) -> bool {
        self.table.is_releasing()
    }
}

/// What a server has refused, as an error of that server.
pub(crate) fn refusal(error: EnsembleError) -> NodeError {
    let is_permanent = error.remedy() == Remedy::Configure;
    let hint = match error {
        EnsembleError::Unimplemented => ": locks need ZooKeeper 3.5 or later",
        _ => "",
    };
    NodeError::Refused {
        text: format!("{error}{hint}"),
        is_permanent,
    }
}

/// Why a connection has ended, as the session says it.
fn error(problem: Option<&Problem>, phase: Phase) -> NodeError {
    match problem {
        Some(Problem::Protocol(error)) => NodeError::UnexpectedReply(error.to_string()),
        Some(Problem::Refused(error) | Problem::Moved(error)) => refusal(*error),
        Some(Problem::TimedOut) => NodeError::TimedOut(phase),
        Some(Problem::WrongXid(xid)) => {
            disconnected(&format!("answer to request {xid}, which is not the oldest"))
        }
        Some(Problem::Disconnected) => disconnected("not connected"),
        Some(Problem::SessionGone) | None => disconnected("the session has ended"),
    }
}

fn disconnected(text: &str) -> NodeError {
    NodeError::Disconnected(text.to_owned())
}
