//! A blocking distributed lock for Rust. redlatch holds a lock on a majority of N independent Redis
//! or Valkey servers, which it calls nodes (the [Redlock algorithm]), or on a [ZooKeeper
//! ensemble](guide::zookeeper). It is called from ordinary threads and needs no async runtime.
//!
//! ```no_run
//! use redlatch::LockClient;
//! use std::time::Duration;
//!
//! fn main() -> Result<(), redlatch::Error> {
//!     let client = LockClient::new(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])?;
//!     let lock = client.lock("orders:42", Duration::from_secs(10))?; // waits until it is free
//!     println!("charging the card");
//!     lock.ensure_held()?; // before the step that must not run twice
//!     println!("marking the order as paid");
//!     drop(lock); // or `lock.release()?`, which fails if the lock was lost before
//!     Ok(())
//! }
//! ```
//!
//! **Nodes that were started less than a minute ago:** `lock` waits until they have been up for
//! [`Builder::max_ttl`] (60 s by default), and `try_lock` returns an error, because a node that
//! restarted may have forgotten who holds a lock. [`Builder::restart_guard`] turns this off, for
//! tests and for nodes that write every change to disk at once.
//!
//! # What do you want to do?
//!
//! | task | how |
//! |---|---|
//! | acquire a lock and wait until it is free | [`LockClient::lock`] |
//! | acquire a lock only if it is free now | [`LockClient::try_lock`] |
//! | wait for a limited time | [`LockRequest::try_lock_for`], [`LockRequest::try_lock_until`] |
//! | run a closure under a lock that is extended automatically | [`LockClient::with_lock`] |
//! | hold a lock for as long as the work takes | [`LockRequest::keep_alive`] |
//! | check the lock before a step | [`LockGuard::ensure_held`], [`LockGuard::remaining`] |
//! | be notified when a lock is lost | [`LockGuard::on_lost`], `wait_lost`, and `lost` for tasks |
//! | reject a stale writer | [`LockRequest::fenced`], [`FencingToken`] |
//! | lock several resources at once, without deadlocks | [`LockClient::request_all`] |
//! | many readers at a time, or one writer | [`LockRequest::shared`] |
//! | at most `n` holders at a time, each with a number | [`LockRequest::one_of`] |
//! | run a job once in each hour or day, on one of many machines | [`LockClient::once_per`] |
//! | run a job on one machine only | [`LockGuard::let_expire`], [`LockRequest::hold_at_least`] |
//! | hand a lock to another process | [`LockGuard::into_token`], [`LockRequest::resume`] |
//! | have one of several processes lead | [`LockClient::election`] |
//! | stop waiting, in one call or at shutdown | [`CancelToken`], [`LockClient::cancel_token`] |
//! | collect metrics, write logs | [`guide::monitoring`], [`Builder::on_event`] |
//! | see who holds a lock, and who waits for it | [`LockClient::inspect`] |
//! | list the locks whose names match a pattern | [`LockClient::locks`] |
//! | remove the lock of another client by force | [`LockClient::force_release`] |
//! | see what a crash of a server costs, and what is set up wrong | [`LockClient::nodes`] |
//! | configure nodes, timeouts, prefixes, access rights | [`guide::settings`] |
//! | run a command under a lock, without writing Rust | [`guide::command`] |
//! | test a program, call it from tokio | [`guide::recipes`] |
//! | use one server, or go from one to three | [`guide::one_server`] |
//! | spread locks over several sets of nodes, see how far it goes | [`guide::scale`] |
//! | use Sentinel, a Redis Cluster, or a primary that fails over | [`guide::groups`] |
//! | use ElastiCache, Memorystore, or another provider's Redis | [`guide::providers`] |
//! | lock beside programs that use another library | [`guide::other_programs`] |
//! | keep the locks on ZooKeeper instead of Redis, or move there | [`guide::zookeeper`] |
//!
//! # Guarantees
//!
//! In short, on Redis nodes; [`guide::guarantees`] has all promises, their assumptions and tests,
//! and [those on ZooKeeper](guide::guarantees#locks-on-zookeeper).
//!
//! * **Mutual exclusion.** While [`LockGuard::remaining`] is above zero, no other client holds the
//!   lock. Assumptions: the nodes keep their keys while they are up, clocks drift apart by no more
//!   than [`Builder::drift_factor`], and all clients name the same nodes. For readers and permits:
//!   no other client holds the exclusive lock, nor the same permit. On servers with replicas: if
//!   they are named [as a group](guide::groups).
//! * **Liveness.** A lock whose holder died can be acquired again when its ttl has passed, if a
//!   majority of the nodes is up. Keys set by a failed attempt are removed.
//! * **Order.** Calls that wait for a lock are served in the order in which their clients came, and
//!   a release wakes the next one. A fault can disturb the order, never the mutual exclusion.
//! * **Deadlines.** A round takes no longer than [`Builder::node_timeout`] if a majority of the
//!   nodes answers or fails by then, nine times as long if too many are silent, and the first of a
//!   client no longer than [`Builder::connect_timeout`]. A node that is down, frozen or being
//!   looked up does not delay a caller whose majority has answered.
//! * **Clear results.** "Others hold the lock" is `Ok(None)`. "Too few nodes answered to know" is
//!   an error with a report from each node ([`NoQuorum`]).
//! * **Bounded resources.** One connection to each node for all threads of a client; no background
//!   threads unless locks are kept alive or watched, or calls started (on ZooKeeper one connection,
//!   and one thread); bounded memory and no panic, whatever a node sends.
//!
//! No lock with a time to live can promise that no write ever arrives late. [`guide::limits`] lists
//! such limits, and how to handle each.
//!
//! # How it works
//!
//! A lock is a key with a random token as its value and a time to live. It is set on each node that
//! does not have it (`SET key token NX PX ttl`), and it is held if more than half of the
//! *configured* nodes set it in time. The command goes to all nodes at once, then the replies are
//! read, and a majority decides. A release deletes the key on each node where its value is still
//! this token.
//!
//! A call that waits stands in a queue that each node keeps beside the lock, and sleeps. A release
//! reserves the lock for the first waiter in the same step, and the node tells its client, which
//! then acquires the lock in one round. The guide has the details of [the
//! queue](guide::waiting#the-nodes-queue), of [readers and
//! permits](guide::waiting#readers-and-permits), and of [locks on
//! ZooKeeper](guide::guarantees#until-when-a-session-may-be-relied-on).
//!
//! # Features
//!
//! | feature | what it adds | default |
//! |---|---|---|
//! | `groups` | Sentinel, Cluster and `?failover=true` as nodes: [its page](guide::groups) | on |
//! | `diagnostics` | [`NodeStatus`], [`Locks`], [`LockClient::force_release`] | on |
//! | `registers` | [`register`], [`transaction`], [`LockClient::once_per`] | on |
//! | `embedded` | `redlatch::embedded`: Redis-like nodes for tests; needs a C compiler | off |
//! | `zookeeper` | `zk://` URLs: locks on ZooKeeper; [its page](guide::zookeeper) | off |
//! | `tls` | `rediss://`, `zks://` URLs: TLS by rustls; [its page](guide::settings#tls) | off |
//! | `tls-bundled-roots` | Mozilla's root certificates inside the program | off |
//! | `tracing` | [`Builder::tracing`]: logs, see [`guide::monitoring`] | off |
//! | `metrics` | [`Builder::metrics`]: metrics, see [`guide::monitoring`] | off |
//! | `serde` | [`ClientSettings`] in the configuration file of a service | off |
//!
//! With `default-features = false` there are locks alone, in all their forms.
//!
//! # Platforms
//!
//! | platform | does time count while the machine is suspended? | `unix://` URLs |
//! |---|---|---|
//! | Linux, Android | yes (`CLOCK_BOOTTIME`); a test checks it | yes |
//! | macOS, iOS | yes, by Apple's manual (`CLOCK_MONOTONIC`); not tested | yes |
//! | Windows | yes, by Microsoft's documentation; Rust does not promise it; not tested | no |
//! | other Unix | depends on the system (`CLOCK_MONOTONIC`); not promised | yes |
//!
//! Where suspended time does not count, a guard can report a lock as held after the machine wakes
//! up although the lock has expired on the nodes. On every platform, timeouts of calls and calls
//! of [`LockGuard::on_lost`] can come late by as long as the machine slept. On Windows, a `unix://`
//! URL is a [`ConfigError`].
//!
//! # Versions
//!
//! The minimum Rust version is 1.85. A later minor version may need a newer one that is at least a
//! year old; a patch does not. One public function takes a type of another crate,
//! `TlsSettings::from_config`: its `ClientConfig` is of rustls 0.23, and redlatch goes to another
//! version of rustls in a version of its own that may break programs.
//!
//! [Redlock algorithm]: https://redis.io/docs/latest/develop/use/patterns/distributed-locks/

// docs.rs shows which feature an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

// To read redlatch in an afternoon, begin with the files that CONTRIBUTING.md names.

mod backend;
#[cfg(any(feature = "tracing", feature = "metrics"))]
mod bridge;
mod callback;
mod cancel_token;
mod client;
mod clock;
mod config;
mod core;
mod driver;
#[cfg(feature = "embedded")]
pub mod embedded;
mod entropy;
pub mod error;
pub mod event;
mod fencing;
mod guard;
// It is documentation alone. Its examples need all features: the tests of documentation leave it
// out without them.
#[cfg(all(
    doc,
    any(
        not(doctest),
        all(
            feature = "embedded",
            feature = "tls",
            feature = "zookeeper",
            feature = "tracing",
            feature = "metrics"
        )
    )
))]
pub mod guide;
mod inspect;
mod name;
mod net;
mod node_url;
mod owner_process;
mod pending;
mod redlock;
#[cfg(feature = "registers")]
mod registers;
mod texts;
mod wait_queue;
mod watchdog;
#[cfg(feature = "zookeeper")]
mod zookeeper;

use redlatch_protocol::{engine, node, resp};

pub use cancel_token::CancelToken;
pub use client::{Election, Leadership, LockClient, LockRequest};
#[cfg(feature = "diagnostics")]
#[cfg_attr(docsrs, doc(cfg(feature = "diagnostics")))]
pub use client::{FoundLock, Locks};
pub use config::{Builder, ClientSettings, NodeUrls};
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use config::{ClientCertificate, TlsSettings};
#[doc(inline)]
pub use error::{ConfigError, Error, LockLost, LossReason, NoQuorum, NodeError, SpawnError};
#[cfg(feature = "registers")]
#[cfg_attr(docsrs, doc(cfg(feature = "registers")))]
#[doc(inline)]
pub use error::{OncePerError, RegisterError, TransactionError};
#[doc(inline)]
pub use event::{Event, Released};
pub use fencing::FencingToken;
pub use guard::{Extending, LockGuard, LockToken, Lost};
pub use inspect::{Holder, Inspection, LockState, NodeView, NotALock, OtherProgram};
pub use inspect::{OwnHolder, OwnThreads, QueuedWaiter};
pub use name::Name;
#[doc(inline)]
pub use node::{NodeKind, QueueSupport};
#[cfg(feature = "diagnostics")]
#[cfg_attr(docsrs, doc(cfg(feature = "diagnostics")))]
#[doc(inline)]
pub use node::{NodeStatus, NodeWarning};
pub use pending::Pending;
#[cfg(feature = "registers")]
#[doc(no_inline)]
pub use register::Register;
#[cfg(feature = "registers")]
#[cfg_attr(docsrs, doc(cfg(feature = "registers")))]
pub use registers::{OncePer, OncePerRun, register, transaction};

/// The parts of a [`NodeStatus`]: how a node keeps its data, its memory, its role, its clock, and
/// whether it has a vote on registers.
#[cfg(feature = "diagnostics")]
#[cfg_attr(docsrs, doc(cfg(feature = "diagnostics")))]
pub mod status {
    #[doc(inline)]
    pub use crate::engine::{NoVote, RegisterMembership};
    #[doc(inline)]
    pub use crate::node::{
        ClockDifference, CrashLoss, Fsync, GroupStatus, Memory, Persistence, Role,
    };
}

/// What only the fuzz targets use besides the pure crates. Not a public API.
#[doc(hidden)]
pub mod internal {
    pub mod node_url {
        pub use crate::node_url::*;
    }
    #[cfg(feature = "tls")]
    pub mod tls {
        pub use crate::net::{Received, TlsSession, TlsTarget, UNSENT_MAX};
    }
}

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
