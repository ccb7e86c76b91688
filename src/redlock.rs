//! Locks that a majority of independent nodes keeps: what a call that acquires one is given, whose
//! main loop is in `call`, and the single rounds that extend, release and look at them.

mod call;
mod nodes;
#[cfg(feature = "diagnostics")]
mod operator;
mod other_data;
mod started;
mod thread;

use call::{Call, NodesCaller};
use nodes::{endpoint, session_options};
use other_data::LastLooks;
use started::decision;
use thread::{AskingThread, AttemptLine};

use crate::backend::{
    Backend, Blocking, EventRecorder, LockSpec, SharedParts, Start, Started, StartedExtension,
    at_once,
};
use crate::clock;
use crate::config::{RedisNode, Settings};
use crate::driver::{Driven, Driver, Work};
use crate::engine::{
    Acquire, Acquired, Command, Extended, Extension, HeldLock, Release, Request, Rules, Said,
    Token, Ttl, Verdict,
};
use crate::error::{ConfigError, Error, NoQuorum};
use crate::event::Released;
use crate::inspect::{Inspection, NotALock};
use crate::net::{Endpoint, Net, Order, RoundOutcome};
use crate::node::{NodeAnswer, NodeError, NodeReport, Session};
use crate::owner_process::OwnerProcess;
use crate::wait_queue::QueueHead;
use crate::watchdog::{GuardedLock, Watchdog};
use redlatch_protocol::inspect::{KeySnapshot, Look};
use std::pin::pin;
use std::sync::Arc;

/// The connections to the nodes, and what keeps locks on them alive.
pub(crate) struct Redlock {
    /// Dropped before the connections, which its thread uses: dropping it ends that thread.
    watchdog: Watchdog,
    /// As the watchdog.
    driver: Driver,
    net: Arc<Net>,
    attempt_line: AttemptLine,
    rules: Arc<Rules>,
    owner_process: Arc<OwnerProcess>,
    last_looks: LastLooks,
    #[cfg(feature = "diagnostics")]
    diagnostics: operator::Diagnostics,
}

impl Redlock {
    /// Prepares connections to the nodes; makes none yet.
    ///
    /// # Errors
    ///
    /// The operating system refuses a poll, or a thread for the connections.
    pub(crate) fn new(
        nodes: &[RedisNode],
        settings: &Settings,
        shared: SharedParts<'_>,
    ) -> Result<Self, ConfigError> {
        let SharedParts {
            changes,
            notifier,
            owner_process,
        } = shared;
        let endpoints: Vec<Endpoint> = nodes.iter().map(|node| endpoint(node, settings)).collect();
        let sessions = nodes
            .iter()
            .map(|node| Session::new(session_options(&node.url, settings)));
        let net = Net::new(
            endpoints.iter().cloned().zip(sessions).collect(),
            settings.connecting,
            settings.wait_for_all,
            settings.rules.node_timeout,
            changes,
            settings.io_thread,
        );
        let net = Arc::new(net.map_err(|error| ConfigError::System(Arc::new(error)))?);
        Ok(Self {
            watchdog: Watchdog::new(&net, &settings.rules, notifier),
            driver: Driver::new(Some(&net), owner_process),
            net,
            attempt_line: AttemptLine::new(owner_process),
            rules: Arc::clone(&settings.rules),
            owner_process: Arc::clone(owner_process),
            last_looks: LastLooks::default(),
            #[cfg(feature = "diagnostics")]
            diagnostics: operator::Diagnostics::new(nodes, endpoints, settings),
        })
    }

    /// Sends a request without waiting for an answer. In a child that a callback has forked, it
    /// does nothing: the connections are the parent's.
    pub(crate) fn post(&self, request: Request) {
        if !self.owner_process.is_known_forked() {
            self.net.post(request);
        }
    }

    fn machine(&self, spec: &LockSpec<'_>, start: &mut Start) -> Acquire {
        let rules = Arc::clone(&self.rules);
        let key = Arc::clone(&spec.key);
        let mut acquire = Acquire::new(rules, key, spec.ttl, spec.wait)
            .min_validity(spec.min_validity)
            .with(spec.attributes.clone());
        if let Some(held) = start.held.take() {
            acquire = acquire.taking_over(held);
        }
        if let Some(time) = start.not_before {
            acquire = acquire.pausing(time);
        }
        acquire
    }

    /// The loop of a call, however that waits.
    #[inline(always)]
    fn call<'a, 'e, C>(
        &'a self,
        caller: &'a C,
        spec: &'a LockSpec<'a>,
        start: &'a Start,
        recorder: Option<&'a mut EventRecorder<'e>>,
    ) -> Call<'a, 'e, C> {
        Call {
            caller,
            spec,
            head: start.head.as_ref().map(QueueHead::handle),
            recorder,
            rules: &self.rules,
            owner_process: &self.owner_process,
            last_looks: &self.last_looks,
            looked: None,
            reports: Vec::new(),
        }
    }
}

impl<C: NodesCaller> Call<'_, '_, C> {
    /// The outcome of a call to which too few nodes have answered. A quarantine that outlasts the
    /// wait has ended it early: that others hold the lock is said at its end, as ever, because
    /// callers pace themselves by that.
    async fn unanswered(&mut self) -> Acquired {
        let error = NoQuorum::new(self.reports.clone());
        let is_over = self.spec.call.is_cancelled() || self.owner_process.is_known_forked();
        if error.quarantine().is_none() || is_over || !self.is_held().await {
            return Acquired::Unanswered;
        }
        if let Some(deadline) = self.spec.wait.deadline() {
            self.caller.pause_until(deadline).await;
        }
        Acquired::Contended
    }

    /// Do other clients hold the lock? Nodes in quarantine cannot grant it, and refuse it also if
    /// they only reserve it for a waiter. This needs another round, so nobody else is asked.
    async fn is_held(&self) -> bool {
        for key in self.spec.keys() {
            let outcome = self.ask(look(self.rules, key)).await;
            let seen = inspection(Arc::clone(key), outcome);
            if seen.is_ok_and(|seen| seen.state.keeps_out(self.spec.share())) {
                return true;
            }
        }
        false
    }
}

impl Backend for Redlock {
    fn acquire(
        &self,
        spec: &LockSpec<'_>,
        start: &mut Start,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<HeldLock>, Error> {
        let blocking = Blocking {
            net: &*self.net,
            call: &spec.call,
        };
        let patience = self.rules.connect_timeout;
        let caller = AskingThread::new(blocking, &self.attempt_line, spec.wait, patience);
        let mut acquire = self.machine(spec, start);
        let mut call = self.call(&caller, spec, start, recorder);
        let outcome = at_once(pin!(call.run(&mut acquire)))?;
        result(outcome, call.reports, spec.ttl)
    }

    fn start<'a>(
        &'a self,
        driven: &'a Driven,
        spec: &'a LockSpec<'_>,
        start: &'a mut Start,
        recorder: Option<&'a mut EventRecorder<'_>>,
    ) -> Work<'a, Result<Option<HeldLock>, Error>> {
        Box::pin(async move {
            let caller = Started {
                net: &*self.net,
                driven,
                call: &spec.call,
            };
            let mut acquire = self.machine(spec, start);
            let mut call = self.call(&caller, spec, start, recorder);
            let outcome = call.run(&mut acquire).await?;
            result(outcome, call.reports, spec.ttl)
        })
    }

    fn driver(&self) -> &Driver {
        &self.driver
    }

    fn extend(&self, extension: Extension) -> (Extended, Vec<NodeReport>) {
        match extension.request(&self.rules) {
            Ok(request) => {
                let outcome = self.net.submit(request);
                // After the answer that decided it: a lock must not look longer than it is.
                let extended = extension.conclude(clock::now(), &outcome.votes, &self.rules);
                (extended, outcome.reports)
            }
            Err(extended) => (extended, Vec::new()),
        }
    }

    fn start_extension<'a>(
        &'a self,
        driven: &'a Driven,
        held: &'a Arc<GuardedLock>,
        ttl: Ttl,
    ) -> Work<'a, StartedExtension> {
        Box::pin(self.extend_started(driven, held, ttl))
    }

    fn release(&self, release: Release<'_>) -> Result<Released, NoQuorum> {
        let outcome = self.net.submit(release.request(&self.rules));
        released(&release, outcome)
    }

    fn start_release<'a>(
        &'a self,
        driven: &'a Driven,
        release: Release<'a>,
    ) -> Work<'a, Result<Released, NoQuorum>> {
        Box::pin(async move {
            driven.order(Order::Round(release.request(&self.rules)));
            released(&release, decision(driven).await)
        })
    }

    fn give_up(&self, held: &HeldLock, keep_for: Option<Ttl>) {
        self.post(held.undo_after(keep_for, clock::now(), &self.rules));
    }

    fn watchdog(&self) -> Option<&Watchdog> {
        Some(&self.watchdog)
    }

    fn end_waits(&self, waiter: Option<Token>) {
        self.net.end_waits(waiter);
    }

    fn other_data(&self, key: &[u8]) -> Option<NotALock> {
        self.last_looks.other_data(key)
    }

    fn inspect(&self, key: Arc<[u8]>) -> Result<Inspection, Error> {
        let outcome = self.net.submit(look(&self.rules, &key));
        inspection(key, outcome)
    }

    #[cfg(feature = "diagnostics")]
    fn operator(&self) -> &dyn crate::backend::Operator {
        self
    }
}

/// The result of a call whose last attempt has ended so.
#[inline(always)]
fn result(
    outcome: Acquired,
    reports: Vec<NodeReport>,
    ttl: Ttl,
) -> Result<Option<HeldLock>, Error> {
    match outcome {
        Acquired::Held(held) => Ok(Some(held)),
        Acquired::Contended => Ok(None),
        Acquired::Unanswered => Err(Error::NoQuorum(NoQuorum::new(reports))),
        Acquired::TooSlow(took) => Err(Error::TooSlow {
            took,
            ttl: ttl.as_duration(),
        }),
        Acquired::NoEntropy => Err(Error::NoEntropy),
        Acquired::SameServer => {
            let mut same = reports
                .into_iter()
                .filter_map(|report| match report.answer {
                    NodeAnswer::Failed(NodeError::SameServer { url }) => Some((url, report.url)),
                    _ => None,
                });
            let (first, second) = same.next().expect("a report names the two nodes");
            Err(Error::SameServer { first, second })
        }
    }
}

/// What has become of a lock whose release has ended so.
fn released(release: &Release<'_>, outcome: RoundOutcome) -> Result<Released, NoQuorum> {
    match release.conclude(&outcome.votes) {
        Verdict::Won => Ok(Released::InTime),
        Verdict::Lost => Ok(Released::TooLate),
        Verdict::Pending => Err(NoQuorum::new(outcome.reports)),
    }
}

/// A request for what each node has under this key.
fn look(rules: &Rules, key: &Arc<[u8]>) -> Request {
    let look = Command::Custom(Arc::new(Look::new(Arc::clone(key))));
    Request::to_all(rules, clock::now(), look)
}

/// What the nodes have said that they have under this key.
fn inspection(key: Arc<[u8]>, outcome: RoundOutcome) -> Result<Inspection, Error> {
    let snapshots: Vec<_> = outcome.said.iter().map(snapshot).collect();
    Inspection::of(key, &snapshots, outcome.reports)
        .map_err(|reports| Error::NoQuorum(NoQuorum::new(reports)))
}

/// What a node has said that it has under a key.
fn snapshot(said: &Option<Said>) -> Option<KeySnapshot> {
    said.as_ref()?.get().cloned()
}

#[cfg(test)]
mod tests;
