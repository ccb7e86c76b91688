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
mod joint_shares;
#[cfg(feature = "diagnostics")]
mod node_keys;
#[cfg(feature = "registers")]
pub(crate) mod registers;

pub(crate) use backend::Backend;
pub(crate) use backend::Redlock;
pub(crate) use cancellation::{Call, Cancellation};
#[cfg(feature = "zookeeper")]
pub(crate) use ensemble::{Ensemble, FoundDirectory};
pub(crate) use joint_shares::{Departure, Granted, JointShares, Member, PUBLISHER};
#[cfg(feature = "diagnostics")]
pub(crate) use node_keys::{KeyStep, NodeKeys};

use crate::cancel_token::CancelToken;
use crate::clock::{self, Time};
use crate::config::{Settings, is_reserved};
use crate::engine::{Entropy, Input, Operation, Request, Rules, Step, Ttl};
use crate::error::{ConfigError, LossReason, SpawnError, TtlError};
use crate::event::{Event, Listener};
use crate::name::Name;
use crate::node::{NodeAnswer, NodeError, NodeReport};
use crate::owner_process::OwnerProcess;
use crate::wait_queue::WaitQueues;
use crate::watchdog::{BackgroundEvent, Demand, Emit, GuardedLock, Notifier, period};
#[cfg(feature = "registers")]
use registers::RegisterMemory;
use std::mem;
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
    pub(crate) registers: RegisterMemory,
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
        let emit = listener.clone().map(|listener| emit_background(listener, prefix));
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
            registers: RegisterMemory::default(),
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
                Step::Send(request) if request.is_answered() => {
                    let is_queueing = request.queue_entry().is_some();
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

    /// It makes no attempts, between which it would pause.
    fn pause_until(&self, _: Time) -> bool {
        false
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

impl Core {
    /// Does this client have a listener, and may this thread call it?
    pub(crate) fn has_listener(&self) -> bool {
        self.listener.is_some() && !Listener::is_in_callback() && !self.is_known_forked()
    }

    /// The time, if there is a listener: without one, no clock is read.
    pub(crate) fn now_if_listened(&self) -> Option<Time> {
        self.has_listener().then(clock::now)
    }

    /// Emits an event, if there is a listener. What the event reports must be complete: the
    /// callback may use this client, and may panic.
    pub(crate) fn emit<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(listener) = self.listener.as_ref().filter(|_| self.has_listener()) {
            let event = event();
            // A register's turn is a lock of the library's own.
            if !event.resource().is_some_and(|name| is_reserved(name.as_bytes())) {
                listener.emit(&event);
            }
        }
    }

    /// Emits the loss of a lock that was requested at `since`, if there is a listener.
    pub(crate) fn emit_lost(&self, resource: Name<'_>, since: Time, reason: LossReason) {
        self.emit(|| Event::Lost { resource, held: clock::now().since(since), reason });
    }
}

/// Emits to `listener` what happens outside any call. It holds no reference to the core: dropping
/// the client does not wait for it.
fn emit_background(listener: Listener, prefix: usize) -> Emit {
    Box::new(move |event| match event {
        BackgroundEvent::Nodes => listener.emit_node_changes(),
        BackgroundEvent::AutoExtension { key, took, validity, error } => {
            let (resource, took, validity) = (Name::new(&key[prefix..]), *took, *validity);
            let automatic = true;
            listener.emit(&match error {
                None => Event::Extended { resource, took, validity, automatic },
                Some(error) => Event::NotExtended { resource, took, validity, error, automatic },
            });
        }
    })
}

impl Core {
    /// For how long extensions may keep a lock: `asked`, or the client's setting if that is less.
    pub(crate) fn max_hold(&self, asked: Option<Duration>) -> Option<Duration> {
        [asked, self.rules.hold_max].into_iter().flatten().min()
    }

    /// How much of the watchdog's capacity a lock with this ttl and keys of so many bytes takes.
    pub(crate) fn demand(&self, ttl: Ttl, key_bytes: usize) -> Demand {
        Demand::new(ttl.as_duration(), period(&self.rules, ttl), key_bytes)
    }

    /// Starts the notifier's thread, if it does not run.
    pub(crate) fn start_notifier(&self) -> Result<(), SpawnError> {
        self.notifier.start()
    }

    /// Has the notifier check a lock now and when its validity ends, and call its callbacks once it
    /// is lost.
    pub(crate) fn watch_for_loss(&self, held: Arc<GuardedLock>) {
        self.notifier.watch_for_loss(held);
    }
}

// In a forked child every call is refused, and nothing that belongs to the parent is dropped.

impl Core {
    /// Is this another process than the one that built the client? Ask before taking any mutex: in
    /// a forked child, the thread that holds it may not exist.
    pub(crate) fn is_forked(&self) -> bool {
        self.owner_process.is_forked()
    }

    /// The result of the last [`is_forked`](Self::is_forked), for code that is reached only after
    /// it was called.
    pub(crate) fn is_known_forked(&self) -> bool {
        self.owner_process.is_known_forked()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.owner_process.is_forked() {
            // References that are leaked, so that none of this is dropped here. The child
            // shares the poll with its parent: removing a socket here removes it there. And a
            // thread of the parent may have been half way through a change.
            let queues = (self.wait_queues.clone(), self.set_wait_queues.clone());
            let queues = (queues, self.joint_shares.clone());
            mem::forget(queues);
            self.backend.leak();
        }
    }
}
