//! The connection of one client to a ZooKeeper ensemble, shared by its threads. A thread of its own
//! drives it, since a session has to be kept alive whatever the callers do.

mod begun_order;
mod examination;
mod servers;

pub(crate) use servers::{LockMessage, OrderKind, refusal};

use super::IoThread;
use super::leader_followers::LeaderFollowers;
use super::socket_loop::{DrainLimits, SocketLoop};
use super::{ChangeQueue, ConnectOptions, Endpoint, MARGIN, socket_loop};
use crate::clock::{self, Time};
use crate::engine::Token;
use crate::node::{NodeAnswer, NodeError, NodeKind, NodeReport, NodeStatus};
use begun_order::BegunOrder;
use redlatch_zookeeper::lock_table::{LockTable, Outcome, Random};
use redlatch_zookeeper::session::EnsembleSessionOptions;
use servers::{LockOrder, Servers};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// The connection, shared by the threads of a client.
#[derive(Debug)]
pub(crate) struct EnsembleNet {
    event_loop: Arc<LeaderFollowers<SocketLoop<Servers>>>,
    endpoints: Vec<Endpoint>,
    /// What each server did last.
    reports: Arc<Mutex<Vec<NodeReport>>>,
    /// The timeout of the session that was granted last, in milliseconds; 0 before the first.
    granted_ms: Arc<AtomicU64>,
    /// Dropped after the reference to the event loop, of which the thread then has the last.
    _io_thread: IoThread,
}

impl EnsembleNet {
    /// A connection to one of these servers, made when it is first needed.
    ///
    /// When this is dropped, it waits for up to `drain_for` for the ensemble to confirm what was
    /// written last.
    ///
    /// # Errors
    ///
    /// The operating system could not create a poll or a thread.
    pub(crate) fn new(
        servers: Vec<(Arc<str>, Endpoint)>,
        connecting: ConnectOptions,
        session: EnsembleSessionOptions,
        random: Random,
        changes: Option<Arc<ChangeQueue>>,
        drain_for: Duration,
    ) -> io::Result<Self> {
        let (names, endpoints): (Vec<Arc<str>>, Vec<Endpoint>) = servers.into_iter().unzip();
        let not_asked = names
            .into_iter()
            .map(|url| NodeReport::new(url, NodeKind::Ensemble, NodeAnswer::NotAsked));
        let reports = Arc::new(Mutex::new(not_asked.collect()));
        let connections = socket_loop::connections(endpoints.clone(), connecting);
        let table = LockTable::new(session, random);
        let granted_ms = Arc::new(AtomicU64::new(0));
        let servers = Servers::new(
            table,
            Arc::clone(&reports),
            Arc::clone(&granted_ms),
            changes,
        );
        let drain_limits = DrainLimits {
            most: drain_for,
            next: drain_for,
        };
        let tell = Box::new(Servers::tell);
        let (socket_loop, wake) = SocketLoop::new(connections, servers, tell, drain_limits)?;
        let event_loop = Arc::new(LeaderFollowers::new(socket_loop, wake, true));
        let io_thread = IoThread::start(&event_loop, drain_for + MARGIN)?;
        Ok(Self {
            event_loop,
            endpoints,
            reports,
            granted_ms,
            _io_thread: io_thread,
        })
    }

    /// Gives an order and waits for its outcome. `None` if the thread that drives the connection
    /// does not respond.
    pub(crate) fn submit(&self, kind: OrderKind, until: Time) -> Option<Outcome> {
        let limit = until.after(MARGIN).since(clock::now());
        self.event_loop.submit(LockOrder { kind, until }, limit)
    }

    /// Gives an order for a call that has no thread: `waker` is woken when it has an outcome. If it
    /// has none by the time that is returned too, the thread that drives the connection does not
    /// respond.
    pub(crate) fn begin(
        &self,
        kind: OrderKind,
        until: Time,
        waker: Waker,
    ) -> (BegunOrder<'_>, Time) {
        let order = LockOrder { kind, until };
        let begun = BegunOrder::new(&self.event_loop, order, waker);
        (begun, until.after(MARGIN))
    }

    /// Gives an order that has no outcome.
    pub(crate) fn post(&self, message: LockMessage) {
        self.event_loop.post(message);
    }

    /// Ends the waits of one caller, or of all, now and from now on.
    pub(crate) fn end_waits(&self, token: Option<Token>) {
        self.post(LockMessage::EndWaits(token));
    }

    /// The timeout of the session that was granted last.
    pub(crate) fn granted_timeout(&self) -> Option<Duration> {
        let millis = self.granted_ms.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Does a server answer, as far as is known?
    pub(crate) fn is_answering(&self) -> bool {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports
            .iter()
            .any(|report| report.answer == NodeAnswer::Answered)
    }

    /// What each server says about itself, until this time at the latest.
    pub(crate) fn examine(&self, until: Time) -> Vec<NodeStatus> {
        examination::examine(&self.endpoints, self.reports(), until)
    }

    /// The statuses of the servers, none of which can be asked.
    pub(crate) fn unreachable(&self, error: &NodeError) -> Vec<NodeStatus> {
        NodeStatus::of_unreachable(&self.reports(), error)
    }

    pub(crate) fn reports(&self) -> Vec<NodeReport> {
        self.reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for EnsembleNet {
    fn drop(&mut self) {
        self.event_loop.close();
    }
}
