//! The servers of a ZooKeeper ensemble, of which one is connected at a time: the [`Conversation`]
//! of a session, and what is reported about each server.

use super::change_queue::ChangeQueue;
use super::conversation::Conversation;
use super::follower::Follower;
use super::keeper_loop::ClientKeeper;
use crate::clock::Time;
use crate::engine::Node;
use crate::node::{ChangeRecorder, Host, NodeAnswer, NodeError, NodeReport, Phase};
use crate::zookeeper::keeper::Outcome;
use crate::zookeeper::message::{Remedy, ServerError};
use crate::zookeeper::session::Problem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The locks of a client, and the servers that are asked about them.
#[derive(Debug)]
pub(super) struct Servers {
    keeper: ClientKeeper,
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
        keeper: ClientKeeper,
        reports: &Arc<Mutex<Vec<NodeReport>>>,
        granted_ms: &Arc<AtomicU64>,
        changes: Option<Arc<ChangeQueue>>,
    ) -> Self {
        // No server is slow: one that is silent is left.
        let recorder = ChangeRecorder::new(Duration::MAX);
        Self {
            keeper,
            reports: Arc::clone(reports),
            granted_ms: Arc::clone(granted_ms),
            changes,
            recorder,
            seen: None,
            phase: Phase::Connecting,
            problem: None,
        }
    }

    pub(super) fn keeper(&mut self) -> &mut ClientKeeper {
        &mut self.keeper
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = &Arc<Follower<Outcome>>> {
        self.keeper.waiters()
    }

    /// Notes what has become of the connection since the last call.
    pub(super) fn follow_session(&mut self) {
        self.note_session_loss();
        let session = self.keeper.session();
        let now = (!session.is_down()).then(|| {
            let phase = if session.is_ready() { Phase::Answering } else { self.phase };
            (Node::new(session.server()), phase)
        });
        if now == self.seen {
            return;
        }
        let before = std::mem::replace(&mut self.seen, now);
        if let Some((node, phase)) = before.filter(|(node, _)| now.map(|(it, _)| it) != Some(*node))
        {
            let problem = self.keeper.session().problem();
            let error = self.problem.take().unwrap_or_else(|| error(problem, phase));
            self.lost(node, &error);
        }
        match now {
            Some((node, Phase::Answering)) => {
                let granted = self.keeper.session().timeout().unwrap_or_default();
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
        if !self.keeper.take_session_loss() {
            return;
        }
        let node = self.seen.map_or(Node::new(self.keeper.session().server()), |(node, _)| node);
        let url = Arc::clone(&self.lock_reports()[node.index()].url);
        self.recorder.session_lost(&url);
        self.tell_changes();
    }

    fn lost(&mut self, node: Node, error: &NodeError) {
        let url = self.report(node, NodeAnswer::Failed(error.clone()));
        self.recorder.lost(node, &url, error);
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
            self.changes.iter().for_each(|changes| changes.push(change.clone()));
        }
    }

    fn lock_reports(&self) -> MutexGuard<'_, Vec<NodeReport>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_current(&mut self, node: Node) -> bool {
        self.keeper.session().server() == node.index()
    }
}

impl Conversation for Servers {
    fn is_down(&mut self, node: Node) -> bool {
        !self.is_current(node) || self.keeper.session().is_down()
    }

    fn wants_connection(&mut self, node: Node, now: Time) -> bool {
        self.is_current(node) && self.keeper.session().wants_connection(now)
    }

    fn connecting(&mut self, _: Node, now: Time, phase: Phase) {
        self.phase = phase;
        if self.keeper.session().is_down() {
            self.keeper.session().connecting(now);
        }
        self.follow_session();
    }

    fn phase(&mut self, _: Node) -> Phase {
        if self.keeper.session().is_ready() { Phase::Answering } else { self.phase }
    }

    fn connected(&mut self, _: Node, now: Time, _: Option<Host>) {
        self.phase = Phase::Greeting;
        self.keeper.session().connected(now);
        self.follow_session();
    }

    fn secure_scheme(&self) -> &'static str {
        "zks"
    }

    fn output(&mut self, node: Node) -> &[u8] {
        if self.is_down(node) { &[] } else { self.keeper.session().output() }
    }

    fn wrote(&mut self, _: Node, count: usize) {
        self.keeper.session().wrote(count);
    }

    fn received(&mut self, now: Time, node: Node, bytes: &[u8]) {
        if !self.is_down(node) {
            self.keeper.session().received(now, bytes);
            self.follow_session();
            self.keeper.settle(now);
        }
    }

    fn closed(&mut self, now: Time, node: Node, problem: NodeError) {
        if !self.is_down(node) {
            self.problem = Some(problem);
            self.keeper.session().closed(now, Problem::Disconnected);
            self.follow_session();
            self.keeper.settle(now);
        }
    }
}

/// What a server has refused, as an error of that server.
pub(crate) fn refusal(error: ServerError) -> NodeError {
    let is_permanent = error.remedy() == Remedy::Configure;
    NodeError::Refused { text: error.to_string(), is_permanent }
}

/// Why a connection has ended, as the session says it.
fn error(problem: Option<&Problem>, phase: Phase) -> NodeError {
    match problem {
        Some(Problem::Protocol(error)) => NodeError::UnexpectedReply(error.to_string()),
        Some(Problem::Refused(error) | Problem::Moved(error)) => refusal(*error),
        Some(Problem::TimedOut) => NodeError::TimedOut(phase),
        Some(problem) => NodeError::Disconnected(problem.to_string()),
        None => NodeError::Disconnected("the session has ended".to_owned()),
    }
}
