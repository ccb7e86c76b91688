//! Locks that a majority of independent nodes keeps: the main loop of a call that acquires one, and
//! the single rounds that extend, release and look at them.

mod nodes;
#[cfg(feature = "diagnostics")]
mod operator;
mod other_data;

use nodes::{endpoint, session_options};
use other_data::LastLooks;

use crate::backend::{Backend, EventRecorder, LockSpec, SharedParts, Start};
use crate::clock;
use crate::config::{RedisNode, Settings};
use crate::engine::{
    Acquire, Acquired, Command, Extended, Extension, HeldLock, Input, Release, Request, Rules,
    Said, Step, Token, Ttl, Verdict,
};
use crate::entropy::draw;
use crate::error::{ConfigError, Error, NoQuorum};
use crate::event::Released;
use crate::inspect::{Inspection, NotALock};
use crate::net::{Endpoint, Net, RoundOutcome};
use crate::node::{NodeAnswer, NodeError, NodeReport, Session};
use crate::owner_process::OwnerProcess;
use crate::watchdog::Watchdog;
use redlatch_protocol::inspect::{KeySnapshot, Look};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

/// The connections to the nodes, and what keeps locks on them alive.
pub(crate) struct Redlock {
    /// Dropped before the connections, which its thread uses: dropping it ends that thread.
    watchdog: Watchdog,
    net: Arc<Net>,
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
            net,
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

    /// Asks the nodes what the machine wants to know, and gives it their votes. `reports` is of the
    /// attempt's last round.
    fn run_round(
        &self,
        request: Request,
        acquire: &mut Acquire,
        reports: &mut Vec<NodeReport>,
        mut recorder: Option<&mut EventRecorder<'_>>,
    ) {
        let is_attempt = request.queue_entry().is_none();
        if let Some(recorder) = recorder.as_mut().filter(|_| request.is_claim()) {
            recorder.count_attempt();
        }
        let outcome = self.net.submit(request);
        // After the answer that decided it: a grant must not look younger than it is.
        let now = clock::now();
        // A request about the queue that succeeds says nothing about the attempt before.
        if is_attempt || !outcome.reports.is_empty() {
            *reports = outcome.reports;
        }
        if let Some(recorder) = recorder.filter(|_| is_attempt) {
            recorder.end_round(now, &outcome.votes);
        }
        acquire.handle(now, Input::Votes(outcome.votes));
    }

    /// The attempt before has ended, and no other has begun. `is_called`: a majority of the nodes
    /// reserves the lock for this call, so that its turn begins. Returns whether the call goes on.
    fn note_progress(
        &self,
        acquire: &mut Acquire,
        spec: &LockSpec<'_>,
        start: &Start,
        recorder: Option<&mut EventRecorder<'_>>,
        reports: &[NodeReport],
        is_called: bool,
    ) -> bool {
        if let Some(recorder) = recorder {
            let emit = AssertUnwindSafe(|| recorder.emit_progress(acquire, reports, is_called));
            if let Err(panic) = panic::catch_unwind(emit) {
                // A callback that panics must not leave the caller in the nodes' queue.
                self.abandon(acquire);
                panic::resume_unwind(panic);
            }
        }
        // If a callback has forked, the call goes on in the parent only, whose mutexes may be held.
        if self.owner_process.is_known_forked() {
            return false;
        }
        if let Some(head) = &start.head {
            head.handle()
                .set_held_elsewhere(acquire.held_elsewhere_until());
        }
        spec.call.set_waiter(acquire.waiter());
        !spec.call.is_cancelled()
    }

    /// Ends a call early, of which nothing must be left on the nodes.
    fn abandon(&self, acquire: &mut Acquire) {
        acquire.handle(clock::now(), Input::Cancelled);
        while let Step::Send(request) = acquire.poll() {
            self.post(request);
        }
    }

    /// The result of a call whose last attempt has ended so.
    fn result(
        &self,
        outcome: Acquired,
        reports: Vec<NodeReport>,
        spec: &LockSpec<'_>,
    ) -> Result<Option<HeldLock>, Error> {
        match outcome {
            Acquired::Held(held) => Ok(Some(held)),
            Acquired::Contended => Ok(None),
            Acquired::Unanswered => {
                let error = NoQuorum::new(reports);
                let is_over = spec.call.is_cancelled() || self.owner_process.is_known_forked();
                if error.quarantine().is_some() && !is_over && self.is_held(spec) {
                    // A quarantine that outlasts the wait has ended it early. That others hold the
                    // lock is said at its end, as ever: callers pace themselves by that.
                    if let Some(deadline) = spec.wait.deadline() {
                        spec.call.pause_until(deadline);
                    }
                    return Ok(None);
                }
                Err(Error::NoQuorum(error))
            }
            Acquired::TooSlow(took) => Err(Error::TooSlow {
                took,
                ttl: spec.ttl.as_duration(),
            }),
            Acquired::NoEntropy => Err(Error::NoEntropy),
            Acquired::SameServer => {
                let mut same = reports
                    .into_iter()
                    .filter_map(|report| match report.answer {
                        NodeAnswer::Failed(NodeError::SameServer { url }) => {
                            Some((url, report.url))
                        }
                        _ => None,
                    });
                let (first, second) = same.next().expect("a report names the two nodes");
                Err(Error::SameServer { first, second })
            }
        }
    }

    /// What each node has under this key.
    fn look(&self, key: &Arc<[u8]>) -> (Vec<Option<KeySnapshot>>, Vec<NodeReport>) {
        let look = Command::Custom(Arc::new(Look::new(Arc::clone(key))));
        let request = Request::to_all(&self.rules, clock::now(), look);
        let RoundOutcome { said, reports, .. } = self.net.submit(request);
        (said.iter().map(snapshot).collect(), reports)
    }

    /// Do other clients hold the lock? Nodes in quarantine cannot grant it, and refuse it also if
    /// they only reserve it for a waiter. This needs another round, so nobody else is asked.
    fn is_held(&self, spec: &LockSpec<'_>) -> bool {
        spec.keys().any(|key| {
            let seen = self.inspect(Arc::clone(key));
            seen.is_ok_and(|seen| seen.state.keeps_out(spec.share()))
        })
    }
}

impl Backend for Redlock {
    /// The main loop: it runs the state machine of a call that acquires a lock. The machine says
    /// what to do next and takes in the result; this adds the time and the random numbers, and the
    /// caller when it is to end early.
    fn acquire(
        &self,
        spec: &LockSpec<'_>,
        start: &mut Start,
        mut recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<HeldLock>, Error> {
        let mut acquire = self.machine(spec, start);
        let mut reports = Vec::new();
        // The first attempt of a handoff is refused before it begins, and that says nothing.
        let mut has_tried = false;
        let mut looked = None;
        loop {
            let step = acquire.poll();
            if has_tried && acquire.is_refused() && self.may_look(&acquire, &step, spec, looked) {
                let found = self.find_other_data(spec, &mut looked, recorder.as_deref_mut());
                if let Some(error) = found {
                    self.abandon(&mut acquire);
                    return Err(error);
                }
            }
            if step.is_break() {
                let recorder = recorder.as_deref_mut();
                if !self.note_progress(&mut acquire, spec, start, recorder, &reports, false) {
                    acquire.handle(clock::now(), Input::Cancelled);
                    continue;
                }
            }
            match step {
                Step::Send(request) if request.is_answered() => {
                    has_tried = true;
                    let recorder = recorder.as_deref_mut();
                    self.run_round(request, &mut acquire, &mut reports, recorder);
                }
                Step::Send(request) => self.post(request),
                Step::Wait(wait) => {
                    if !self.net.wait(wait) {
                        acquire.handle(clock::now(), Input::NotCalled);
                        continue;
                    }
                    // Before the turn begins: a callback would use up the time of its round.
                    let listener = recorder.as_deref_mut();
                    if !self.note_progress(&mut acquire, spec, start, listener, &reports, true) {
                        acquire.handle(clock::now(), Input::Cancelled);
                        continue;
                    }
                    begin_attempt(&mut acquire, recorder.as_deref_mut());
                }
                Step::Pause(until) => {
                    if spec.call.pause_until(until) {
                        acquire.handle(clock::now(), Input::Cancelled);
                        continue;
                    }
                    begin_attempt(&mut acquire, recorder.as_deref_mut());
                }
                Step::Done(outcome) => return self.result(outcome, reports, spec),
            }
        }
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

    fn release(&self, held: &HeldLock, keep_for: Option<Ttl>) -> Result<Released, NoQuorum> {
        let release = Release {
            held,
            keep_for,
            began: clock::now(),
        };
        let outcome = self.net.submit(release.request(&self.rules));
        match release.conclude(&outcome.votes) {
            Verdict::Won => Ok(Released::InTime),
            Verdict::Lost => Ok(Released::TooLate),
            Verdict::Pending => Err(NoQuorum::new(outcome.reports)),
        }
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
        let (snapshots, reports) = self.look(&key);
        Inspection::of(key, &snapshots, reports)
            .map_err(|reports| Error::NoQuorum(NoQuorum::new(reports)))
    }

    #[cfg(feature = "diagnostics")]
    fn operator(&self) -> &dyn crate::backend::Operator {
        self
    }
}

/// Begins an attempt with random numbers of its own, or a waiter's turn.
fn begin_attempt(acquire: &mut Acquire, recorder: Option<&mut EventRecorder<'_>>) {
    let entropy = draw().map(|entropy| entropy.at(clock::wall_micros()));
    let input = entropy.map_or(Input::NoEntropy, Input::Attempt);
    // Before the first byte is written: a lock must not look longer than it is.
    let now = clock::now();
    if let Some(recorder) = recorder {
        recorder.begin_attempt(now);
    }
    acquire.handle(now, input);
}

/// What a node has said that it has under a key.
fn snapshot(said: &Option<Said>) -> Option<KeySnapshot> {
    said.as_ref()?.get().cloned()
}
