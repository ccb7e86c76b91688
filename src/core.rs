//! What a client and the guards of its locks share: settings, wait queues, notifier, listener, and
//! the [`Backend`] that keeps the locks.
//!
//! All clones of a client and all guards of its locks hold one [`Core`], which imports neither of
//! them: `client` acquires locks and makes guards, and `guard` extends and releases, both through
//! the backend.

mod guard_list;
mod handle;
mod joint_shares;
mod own_threads;

pub(crate) use guard_list::{GuardList, ListedGuard};
pub(crate) use handle::Handle;
pub(crate) use joint_shares::{Granted, JointShares, PUBLISHER, ShareMember};
pub(crate) use own_threads::name_of_set;

use crate::backend::{Backend, Cancellation, Events, SharedParts};
use crate::cancel_token::CancelToken;
use crate::config::{NodeSettings, Settings};
use crate::engine::{Rules, Ttl};
use crate::error::{ConfigError, TtlError};
use crate::event::{Event, Listener};
use crate::name::Name;
use crate::owner_process::OwnerProcess;
use crate::redlock::Redlock;
use crate::wait_queue::{HandoffLimit, WaitQueues};
use crate::watchdog::{BackgroundEvent, Demand, Emit, Notifier, period};
#[cfg(feature = "zookeeper")]
use crate::zookeeper::EnsembleBackend;
use std::any::Any;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The state that all clones of a client and the guards of its locks share.
pub(crate) struct Core {
    pub(crate) owner_process: Arc<OwnerProcess>,
    /// Who keeps the locks.
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) notifier: Arc<Notifier>,
    /// For locks of one resource.
    pub(crate) wait_queues: Arc<WaitQueues>,
    /// For locks of several resources at once.
    pub(crate) set_wait_queues: Arc<WaitQueues>,
    /// For readers, which threads can be together.
    pub(crate) joint_shares: Arc<JointShares>,
    /// The guards that are not heads of `wait_queues`.
    pub(crate) guard_list: Arc<GuardList>,
    pub(crate) fencing_expiry: Ttl,
    pub(crate) rules: Arc<Rules>,
    pub(crate) max_ttl: Duration,
    pub(crate) key_prefix: Vec<u8>,
    /// The owner of requests that name none.
    pub(crate) owner: Vec<u8>,
    pub(crate) events: Events,
    pub(crate) cancellation: Arc<Cancellation>,
    /// How many [handles](Handle) there are.
    handles: AtomicUsize,
}

impl Core {
    /// Prepares connections to the nodes; makes none yet.
    ///
    /// # Errors
    ///
    /// The operating system refuses a poll, or a thread for the connections.
    pub(crate) fn new(settings: Settings) -> Result<Self, ConfigError> {
        let owner_process = Arc::new(OwnerProcess::here());
        let given = settings.listener.as_ref();
        let listener = given.map(|listener| listener.of_client(&owner_process));
        let changes = listener.as_ref().map(Listener::node_changes);
        let prefix = settings.key_prefix.len();
        let emit = listener
            .clone()
            .map(|listener| emit_background(listener, prefix));
        let notifier = Arc::new(Notifier::new(emit, Arc::clone(&owner_process)));
        let shared = SharedParts {
            changes,
            notifier: &notifier,
            owner_process: &owner_process,
        };
        let backend: Arc<dyn Backend> = match &settings.nodes {
            NodeSettings::Redis(nodes) => Arc::new(Redlock::new(nodes, &settings, shared)?),
            #[cfg(feature = "zookeeper")]
            NodeSettings::ZooKeeper(servers) => {
                Arc::new(EnsembleBackend::new(servers, &settings, shared)?)
            }
        };
        let token = CancelToken::new();
        let queues = wait_queues(settings.handoff_limit, &token, &owner_process);
        let [wait_queues, set_wait_queues, share_queues] = queues.clone();
        let joint_shares = Arc::new(JointShares::new(share_queues));
        let waits = Arc::downgrade(&backend);
        let process = Arc::clone(&owner_process);
        let cancellation = Cancellation::new(token, queues, waits, process);
        Ok(Self {
            backend,
            notifier,
            wait_queues,
            set_wait_queues,
            joint_shares,
            guard_list: Arc::default(),
            fencing_expiry: settings.fencing_expiry,
            rules: settings.rules,
            max_ttl: settings.max_ttl,
            key_prefix: settings.key_prefix,
            owner: settings.owner,
            events: Events::new(listener, &owner_process),
            cancellation,
            owner_process,
            handles: AtomicUsize::new(0),
        })
    }

    /// The ttl in the nodes' unit, if the settings allow it and it leaves `least` of validity.
    pub(crate) fn ttl(&self, ttl: Duration, least: Duration) -> Result<Ttl, TtlError> {
        let Self { max_ttl, rules, .. } = self;
        let most = self
            .backend
            .session_limits()
            .map(|session| session.validity);
        if let Some(most) = most.filter(|most| least > *most) {
            return Err(TtlError::BeyondSession {
                min_validity: least,
                most,
            });
        }
        if ttl > *max_ttl {
            return Err(TtlError::TooLong {
                ttl,
                max_ttl: *max_ttl,
            });
        }
        let whole = Ttl::from_duration(ttl);
        whole
            .filter(|whole| rules.drift.validity(*whole) > least)
            .ok_or_else(|| {
                let enough = rules.drift.shortest_ttl(least);
                TtlError::TooShort {
                    ttl,
                    shortest: enough.map_or(Duration::MAX, Ttl::as_duration),
                }
            })
    }
}

/// A panic of the caller's code leaves no half of a change behind: no callback, body or closure
/// runs while the state is locked or between two steps that belong together.
impl UnwindSafe for Core {}
impl RefUnwindSafe for Core {}

/// Of locks, of sets, and of shares.
fn wait_queues(
    limit: HandoffLimit,
    token: &CancelToken,
    process: &Arc<OwnerProcess>,
) -> [Arc<WaitQueues>; 3] {
    std::array::from_fn(|_| Arc::new(WaitQueues::new(limit, token.clone(), Arc::clone(process))))
}

/// Emits to `listener` what happens outside any call. It holds no reference to the core: dropping
/// the client does not wait for it.
fn emit_background(listener: Listener, prefix: usize) -> Emit {
    Box::new(move |event| match event {
        BackgroundEvent::Nodes => listener.emit_node_changes(),
        BackgroundEvent::AutoExtension {
            key,
            took,
            validity,
            error,
        } => {
            let resource = Name::new(&key[prefix..]);
            let took = *took;
            let validity = *validity;
            let automatic = true;
            listener.emit(&match error {
                None => Event::Extended {
                    resource,
                    took,
                    validity,
                    automatic,
                },
                Some(error) => Event::NotExtended {
                    resource,
                    took,
                    validity,
                    error,
                    automatic,
                },
            });
        }
    })
}

impl Core {
    /// For how long extensions may keep a lock: `asked`, or the client's setting if that is less.
    pub(crate) fn max_hold(&self, asked: Option<Duration>) -> Option<Duration> {
        [asked, self.rules.hold_max].into_iter().flatten().min()
    }

    /// How much of the watchdog's capacity a lock with this ttl and keys of this many bytes takes.
    pub(crate) fn demand(&self, ttl: Ttl, key_bytes: usize) -> Demand {
        Demand::new(ttl.as_duration(), period(&self.rules, ttl), key_bytes)
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
            // References that stay, so that none of this is dropped here. The child
            // shares the poll with its parent: removing a socket here removes it there. The
            // threads of the parent do not exist here, a handle may refer to another one, and any
            // of them may have been half way through a change, or hold a mutex.
            keep_inherited((self.wait_queues.clone(), self.set_wait_queues.clone()));
            keep_inherited((self.joint_shares.clone(), self.guard_list.clone()));
            keep_inherited(Arc::clone(&self.backend));
        }
    }
}

/// What a forked child has of its parent's clients and must not drop. It is kept here, and not only
/// forgotten, so that a checker for leaks finds a reference to it.
static INHERITED: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

/// Keeps parts of a client of the parent, to the end of this process.
fn keep_inherited(parts: impl Any + Send) {
    let parts: Box<dyn Any + Send> = Box::new(parts);
    match INHERITED.try_lock() {
        Ok(mut all) => all.push(parts),
        // The thread that has it may be one of the parent, which does not go on here.
        Err(_) => mem::forget(parts),
    }
}
