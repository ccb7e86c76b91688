//! Who keeps the locks of a client: the trait [`Backend`], and what a call gives to it.
//!
//! The trait is about locks and not about requests: a majority of independent nodes votes, and an
//! ensemble has agreed before it answers. What both have in common is above it, in `core`, `guard`
//! and `client`: settings that are checked, the queues of this process, guards, and their events.

mod blocking;
mod caller;
mod cancellation;
mod events;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(feature = "diagnostics")]
mod operator;
#[cfg(feature = "registers")]
mod quorum;
mod started;

pub(crate) use blocking::{Blocking, PausingThread, at_once};
pub(crate) use caller::Caller;
pub(crate) use cancellation::{CancellableCall, Cancellation};
pub(crate) use events::{EventRecorder, Events};
#[cfg(feature = "diagnostics")]
pub(crate) use operator::{KeyListing, Operator};
#[cfg(feature = "registers")]
pub(crate) use quorum::{
    CombinedRegister, Combiner, CombinerMessage, CombiningRole, Committed, Contribution, Quorum,
    RegisterMemory, ReportedVotes,
};
pub(crate) use started::Started;

use crate::clock::Time;
use crate::driver::{Driven, Driver, Work};
use crate::engine::{
    Extended, Extension, HeldLock, LockAttributes, Release, Share, Token, Ttl, Wait,
};
use crate::error::{Error, LossReason, NoQuorum};
use crate::event::Released;
use crate::inspect::{Inspection, NotALock};
use crate::net::ChangeQueue;
use crate::node::NodeReport;
use crate::owner_process::OwnerProcess;
use crate::wait_queue::QueueHead;
use crate::watchdog::{GuardedLock, Notifier, Watchdog};
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

/// Who keeps the locks of a client. Making one connects to nothing.
pub(crate) trait Backend: Send + Sync {
    /// Takes a lock for this call, over from another thread if `start` has it. `None` if others
    /// hold it or wait for it. The call's progress goes to the head of the queue and to `recorder`.
    fn acquire(
        &self,
        spec: &LockSpec<'_>,
        start: &mut Start,
        recorder: Option<&mut EventRecorder<'_>>,
    ) -> Result<Option<HeldLock>, Error>;

    /// The same for a call that was started.
    fn start<'a>(
        &'a self,
        driven: &'a Driven,
        spec: &'a LockSpec<'_>,
        start: &'a mut Start,
        recorder: Option<&'a mut EventRecorder<'_>>,
    ) -> Work<'a, Result<Option<HeldLock>, Error>>;

    /// What goes on with calls that were started.
    fn driver(&self) -> &Driver;

    /// Extends a lock, with the reports for the error.
    fn extend(&self, extension: Extension) -> (Extended, Vec<NodeReport>);

    /// The same for a call that was started. It begins when it is sent, and then under the lock's
    /// mutex: its guard may be given up meanwhile, and no extension comes after the release.
    fn start_extension<'a>(
        &'a self,
        driven: &'a Driven,
        held: &'a Arc<GuardedLock>,
        ttl: Ttl,
    ) -> Work<'a, StartedExtension>;

    /// Gives a lock up, at once or later, and waits for the result.
    fn release(&self, release: Release<'_>) -> Result<Released, NoQuorum>;

    /// The same for a call that was started. It is carried out also if nobody waits for the call
    /// any more.
    fn start_release<'a>(
        &'a self,
        driven: &'a Driven,
        release: Release<'a>,
    ) -> Work<'a, Result<Released, NoQuorum>>;

    /// The same without waiting for anything. Does nothing in a child that a callback has forked.
    fn give_up(&self, held: &HeldLock, keep_for: Option<Ttl>);

    /// A lock is held from now on, and its loss is noticed. Nodes tell of no loss: whoever asks
    /// them for an extension finds out.
    fn watch(&self, held: &Arc<GuardedLock>, head: Option<&QueueHead>) {
        let _ = (held, head);
    }

    /// What extends the locks that are kept alive, if they do not live as long as a session.
    fn watchdog(&self) -> Option<&Watchdog> {
        None
    }

    /// What the session allows that all locks of the client end with, if there is one.
    fn session_limits(&self) -> Option<SessionLimits> {
        None
    }

    /// Can there be a lock with this key?
    fn has_place_for(&self, key: &[u8]) -> bool {
        let _ = key;
        true
    }

    /// Ends the waits of one waiter, or of all, now and from now on.
    fn end_waits(&self, waiter: Option<Token>);

    /// Why the data under this key is not a lock, if a call that was refused has found such data
    /// there last. Asks no node.
    fn other_data(&self, _key: &[u8]) -> Option<NotALock> {
        None
    }

    /// Looks at a lock without taking it.
    fn inspect(&self, key: Arc<[u8]>) -> Result<Inspection, Error>;

    /// Who answers what an operator asks.
    #[cfg(feature = "diagnostics")]
    fn operator(&self) -> &dyn Operator;
}

/// How an extension has ended, with the reports for the error; or why it was not sent.
pub(crate) type StartedExtension = Result<(Extended, Vec<NodeReport>), LossReason>;

/// What a session allows that locks end with.
#[derive(Clone, Copy)]
pub(crate) struct SessionLimits {
    /// How much of its validity is left at any time while it is kept alive.
    pub(crate) validity: Duration,
    /// For how long a lock may stay taken after its guard is gone: so long the session lives, even
    /// if the process dies at once.
    pub(crate) keep_for: Duration,
}

/// What a backend shares with the rest of its client.
pub(crate) struct SharedParts<'a> {
    /// Where changes of the nodes' states are put, if there is a listener.
    pub(crate) changes: Option<Arc<ChangeQueue>>,
    pub(crate) notifier: &'a Arc<Notifier>,
    pub(crate) owner_process: &'a Arc<OwnerProcess>,
}

/// The lock that a call asks for, checked: which, for how long, and how long the call waits.
pub(crate) struct LockSpec<'a> {
    pub(crate) key: Arc<[u8]>,
    pub(crate) attributes: Option<Arc<LockAttributes>>,
    pub(crate) ttl: Ttl,
    /// How much validity must be left when it is granted.
    pub(crate) min_validity: Duration,
    pub(crate) keep_alive: bool,
    /// For how long extensions may keep it.
    pub(crate) max_hold: Option<Duration>,
    pub(crate) hold_at_least: Duration,
    pub(crate) wait: Wait,
    /// The thread for which it asks, if for one in particular.
    pub(crate) thread: Option<ThreadId>,
    pub(crate) call: CancellableCall<'a>,
}

impl LockSpec<'_> {
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        let more = self
            .attributes
            .iter()
            .flat_map(|attributes| &attributes.more_keys);
        std::iter::once(&self.key).chain(more)
    }

    pub(crate) fn share(&self) -> Option<Share> {
        self.attributes
            .as_ref()
            .and_then(|attributes| attributes.share)
    }
}

/// How a call begins after its thread was in the wait queue of this process. Empty if it was not.
#[derive(Default)]
pub(crate) struct Start {
    /// The guard gets it.
    pub(crate) head: Option<QueueHead>,
    /// The lock, if another thread has handed it over.
    pub(crate) held: Option<HeldLock>,
    /// Other processes may have it first.
    pub(crate) not_before: Option<Time>,
}
