//! What a client and the guards of its locks share: settings, wait queues, notifier, listener, and
//! the [`Backend`] that keeps the locks.
//!
//! All clones of a client and all guards of its locks hold one [`Core`], which imports neither of
//! them: `client` acquires locks and makes guards, and `guard` extends and releases, both through
//! the backend.

mod backend;
mod cancellation;
#[cfg(feature = "zookeeper")]
mod ensemble;
mod events;
mod joint_shares;
mod keep_alive;
#[cfg(feature = "diagnostics")]
mod node_keys;
mod process;
mod redlock;
#[cfg(feature = "registers")]
pub(crate) mod registers;

use crate::cancel_token::CancelToken;
use crate::clock::{self, Time};
use crate::config::Settings;
use crate::engine::{Entropy, Input, Operation, Request, Rules, Step, Ttl, Verb};
use crate::error::{ConfigError, TtlError};
use crate::event::Listener;
use crate::node::{NodeAnswer, NodeError, NodeReport};
use crate::owner_process::OwnerProcess;
use crate::wait_queue::WaitQueues;
use crate::watchdog::Notifier;
pub(crate) use backend::Backend;
pub(crate) use cancellation::{Call, Cancellation};
#[cfg(feature = "zookeeper")]
pub(crate) use ensemble::{Ensemble, FoundDirectory};
pub(crate) use joint_shares::{Departure, Granted, JointShares, Member, PUBLISHER};
#[cfg(feature = "diagnostics")]
pub(crate) use node_keys::{KeyStep, NodeKeys};
pub(crate) use redlock::Redlock;
#[cfg(feature = "registers")]
use registers::Registers;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

/// The state that all clones of a client and the guards of its locks share.
pub(crate) struct Core {
    pub(crate) owner_process: Arc<OwnerProcess>,
    /// Who keeps the locks.
    pub(crate) backend: Backend,
    pub(crate) notifier: Arc<Notifier>,
    /// For locks of one resource.
    pub(crate) wait_queues: Arc<WaitQueues>,
    /// For locks of several resources at once.
    pub(crate) set_wait_queues: Arc<WaitQueues>,
    /// For readers, which threads can be together.
    pub(crate) joint_shares: Arc<JointShares>,
    pub(crate) fencing_expiry: Ttl,
    pub(crate) rules: Arc<Rules>,
    pub(crate) max_ttl: Duration,
    pub(crate) key_prefix: Vec<u8>,
    pub(crate) listener: Option<Listener>,
    pub(crate) cancellation: Arc<Cancellation>,
    #[cfg(feature = "registers")]
    pub(crate) registers: Registers,
}

impl Core {
    /// Prepares connections to the nodes; makes none yet.
    ///
    /// # Errors
    ///
    /// The operating system refuses a poll, or a thread for the connections.
    pub(crate) fn new(settings: Settings) -> Result<Self, ConfigError> {
        let owner_process = Arc::new(OwnerProcess::here());
        let listener = settings.listener.as_ref();
        let listener = listener.map(|listener| listener.of_client(&owner_process));
        let changes = listener.as_ref().map(Listener::node_changes);
        let prefix = settings.key_prefix.len();
        let emit = listener.clone().map(|listener| events::emit_background(listener, prefix));
        let notifier = Arc::new(Notifier::new(emit, Arc::clone(&owner_process)));
        let backend = Backend::new(&settings, changes, &notifier, &owner_process)?;
        let token = CancelToken::new();
        let (limit, process) = (settings.handoff_limit, &owner_process);
        let wait_queues = || Arc::new(WaitQueues::new(limit, token.clone(), Arc::clone(process)));
        let queues = [wait_queues(), wait_queues(), wait_queues()];
        let [wait_queues, set_wait_queues, share_queues] = queues.clone();
        let joint_shares = Arc::new(JointShares::new(share_queues));
        let process = Arc::clone(process);
        let cancellation = Cancellation::new(token.clone(), queues, backend.waits(), process);
        Ok(Self {
            backend,
            notifier,
            wait_queues,
            set_wait_queues,
            joint_shares,
            fencing_expiry: settings.fencing_expiry,
            rules: settings.rules,
            max_ttl: settings.max_ttl,
            key_prefix: settings.key_prefix,
            listener,
            cancellation,
            #[cfg(feature = "registers")]
            registers: Registers::default(),
            owner_process,
        })
    }

    /// Runs an extension or a release to its end.
    pub(crate) fn run<O: Operation>(&self, operation: O) -> (O::Outcome, LastRound) {
        self.run_for(&mut Uninterrupted, operation)
    }

    /// The main loop: the acquisitions, extensions and releases that a thread calls run through
    /// here. The extensions of kept locks and the inspections do not. The operation says what to do
    /// next and takes in the result; this adds the time and the random numbers, and the caller when
    /// it is to end early.
    pub(crate) fn run_for<O: Operation>(
        &self,
        caller: &mut impl Caller<O>,
        mut operation: O,
    ) -> (O::Outcome, LastRound) {
        let mut last = LastRound::default();
        loop {
            let step = operation.poll();
            if step.is_break() {
                caller.note_progress(&mut operation, &last);
                if caller.is_cancelled() {
                    operation.handle(clock::now(), Input::Cancelled);
                    continue;
                }
            }
            match step {
                Step::Send(request) if request.verb().is_answered() => {
                    let is_queueing = request.verb() == Verb::Queue;
                    let votes = self.backend.submit(request);
                    // A request about the queue that succeeds says nothing about the attempt
                    // before.
                    if !is_queueing || !votes.reports.is_empty() {
                        last = LastRound { reports: votes.reports };
                    }
                    // After the answer that decided it: a grant must not look younger than it is.
                    operation.handle(clock::now(), Input::Ballot(votes.ballot));
                }
                Step::Send(request) => self.post(request),
                Step::Wait(wait) => {
                    let nodes = self.backend.wait(wait);
                    operation.handle(clock::now(), Input::Reserved(nodes));
                }
                Step::Pause(until) => {
                    if !caller.pause_until(until) {
                        operation.handle(clock::now(), Input::Cancelled);
                        continue;
                    }
                    let entropy = draw().map(|entropy| entropy.at(clock::wall_micros()));
                    let input = entropy.map_or(Input::NoEntropy, Input::Attempt);
                    // Before the first byte is written: a lock must not look longer than it is.
                    operation.handle(clock::now(), input);
                }
                Step::Done(outcome) => return (outcome, last),
            }
        }
    }

    /// Sends a request without waiting for an answer. In a child that a callback has forked, it
    /// does nothing: the connections are the parent's.
    pub(crate) fn post(&self, request: Request) {
        if !self.is_known_forked() {
            self.backend.post(request);
        }
    }

    /// The ttl in the nodes' unit, if the settings allow it and it leaves `least` of validity.
    pub(crate) fn ttl(&self, ttl: Duration, least: Duration) -> Result<Ttl, TtlError> {
        let Self { max_ttl, rules, .. } = self;
        if let Some(most) = self.backend.longest_validity().filter(|most| least > *most) {
            return Err(TtlError::BeyondSession { min_validity: least, most });
        }
        if ttl > *max_ttl {
            return Err(TtlError::TooLong { ttl, max_ttl: *max_ttl });
        }
        let whole = Ttl::from_duration(ttl);
        whole.filter(|whole| rules.drift.validity(*whole) > least).ok_or_else(|| {
            let shortest = rules.drift.shortest_ttl(least);
            let shortest = shortest.map_or(Duration::MAX, Ttl::as_duration);
            TtlError::TooShort { ttl, shortest }
        })
    }
}

/// A panic of the caller's code leaves no half of a change behind: no callback, body or closure
/// runs while the state is locked or between two steps that belong together.
impl UnwindSafe for Core {}
impl RefUnwindSafe for Core {}

/// The caller of an operation, as the main loop sees it: how it pauses, and when it wants the
/// result no more.
pub(crate) trait Caller<O> {
    /// The attempt before has ended, and no other has begun. `last` has the reports of its round.
    fn note_progress(&mut self, operation: &mut O, last: &LastRound);

    fn is_cancelled(&self) -> bool;

    /// Pauses until this time. Returns `false`, and early, if the call is cancelled.
    fn pause_until(&self, time: Time) -> bool;
}

/// The caller of an extension or a release, which has one attempt.
struct Uninterrupted;

impl<O> Caller<O> for Uninterrupted {
    fn note_progress(&mut self, _: &mut O, _: &LastRound) {}

    fn is_cancelled(&self) -> bool {
        false
    }

    fn pause_until(&self, _: Time) -> bool {
        unreachable!("it makes no attempts")
    }
}

/// The reports of an operation's last round, for the error that the operation may end with.
#[derive(Default)]
pub(crate) struct LastRound {
    pub(crate) reports: Vec<NodeReport>,
}

impl LastRound {
    /// The URLs of two nodes that are one server, if there are such.
    pub(crate) fn same_server(&self) -> Option<(Arc<str>, Arc<str>)> {
        self.reports.iter().find_map(|report| match &report.answer {
            NodeAnswer::Failed(NodeError::SameServer { url }) => {
                Some((Arc::clone(url), Arc::clone(&report.url)))
            }
            _ => None,
        })
    }
}

/// Fresh random numbers from the operating system, in one call.
pub(crate) fn draw() -> Option<Entropy> {
    let mut bytes = [0; Entropy::LEN];
    getrandom::fill(&mut bytes).ok()?;
    Some(Entropy::from_bytes(bytes))
}
