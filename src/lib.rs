//! A distributed lock for programs that block: one lock over N independent Redis or Valkey servers
//! (the [Redlock algorithm]), from ordinary threads, without an async runtime.
//!
//! ```no_run
//! use redlatch::LockClient;
//! use std::time::Duration;
//!
//! # fn charge_the_card() {}
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = LockClient::new(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])?;
//! let lock = client.lock("orders:42", Duration::from_secs(10))?; // waits for its turn
//! charge_the_card();
//! lock.release()?; // or drop it
//! # Ok(())
//! # }
//! ```
//!
//! On servers that were started less than a minute ago, `lock` waits for up to that long and says
//! nothing: [`Builder::restart_guard`] has the reason, and [`Event::Quarantined`] tells it to those
//! who [listen](Builder::on_event).
//!
//! # What is guaranteed
//!
//! In short; [`guarantees`] says it in full, with what is presumed and how it is tested.
//!
//! * **Mutual exclusion.** As long as [`LockGuard::remaining`] is above zero, no other client holds
//!   the lock. This assumes that the nodes keep their keys while they are up, that clocks run apart
//!   by no more than [`Builder::drift_factor`], and that all clients name the same nodes.
//! * **It ends.** A lock whose holder died can be had again when its ttl has passed, if a majority
//!   of the nodes is up. A failed attempt is taken back from every node it was sent to, at once or
//!   as soon as that node can be reached again.
//! * **It comes back.** A round takes no longer than [`Builder::node_timeout`], whatever the nodes
//!   do; a node that is down, stopped or being looked up does not hold up a caller whose majority
//!   answered, nor, once it is known to be silent, those who contend for a lock.
//! * **It tells.** "Others hold it", here or elsewhere, is `Ok(None)`; "too few nodes answered to
//!   know" is an error with a report from every node ([`NoQuorum`]).
//! * **It lasts as long as the work.** A lock that is [kept alive](LockRequest::keep_alive), or
//!   taken with [`LockClient::with_lock`], is renewed until its guard is given up or
//!   [`max_hold`](LockRequest::max_hold) is over, and never once its validity has passed.
//!   [`LockGuard::on_lost`] tells of a loss when it happens.
//! * **It is no burden.** One connection to each node for all threads of a client, no thread in the
//!   background unless locks are kept alive or watched, and then one that renews and one that
//!   tells; bounded memory whatever a node does, no panic whatever a server sends.
//!
//! # What is not, and what to do about it
//!
//! * **A lease ends by the clock, not when you are ready.** A thread can be stopped between its
//!   last look at the clock and its write, and write after another client has got the lock. Call
//!   [`LockGuard::ensure_held`] in the line before the one that matters, which makes the gap small,
//!   and let the resource itself refuse what comes late where it must never happen: with a
//!   [`FencingToken`], or a condition on a version number in the same statement.
//! * **A node that forgets can grant a lock twice.** Flushed, with eviction of keys with a ttl, or
//!   failed over to a replica that lagged, it may give away what is still held. With one node of
//!   five that needs bad luck as well; with a majority it needs none. Use masters without automatic
//!   failover and without `volatile-*` or `allkeys-*` eviction. Restarts without data are taken
//!   care of: what a node grants counts when it has been up for [`Builder::max_ttl`], so that the
//!   first lock on servers that have just been started waits that long
//!   ([`Builder::restart_guard`]).
//! * **A server's clock that jumps** ends its part of a lock early or late. Slew clocks, do not
//!   step them.
//! * **A forked child** cannot use its parent's client or guards: it is told so
//!   ([`LockError::OtherProcess`]), and disturbs nothing. It builds a client of its own.
//! * **Re-entrance.** A lock belongs to a guard, not to a thread: who waits for a lock of which it
//!   has the guard waits for itself ([`LockClient`] says what is noticed of that).
//! * **Fairness between processes.** Threads of one client are served in the order they came.
//!   Clients are not: each asks now and then, after random pauses, and whoever asks at the right
//!   time wins.
//! * **Work for servers that are away while nobody calls.** What is done in the background is to
//!   keep locks alive and to tell of that, and nothing else. What a server that could not be
//!   reached is owed, it is sent with the next call or renewal, or its ttl sees to it.
//! * **A thread that is stopped when its lock is lost.** [`LockGuard::on_lost`] tells; stopping the
//!   work is for the work to do.
//!
//! # How it works
//!
//! A lock is a key with a random token as its value and a time to live, set on every node if there
//! is none (`SET key token NX PX ttl`). It is held if more than half of the *configured* nodes set
//! it in time. The command goes to all nodes at once, then the answers are read, and a majority
//! decides. It is released by deleting the key where it still has our token. See [`LockClient`] for
//! the ways to take a lock and [`error`] for what can go wrong.
//!
//! # Where to read on
//!
//! `core.rs` has the loop that every operation runs through, and `engine/mod.rs` what an
//! operation is; those two and this page explain the library. Below them:
//!
//! | module | what it does |
//! |---|---|
//! | [`event`] | what a client tells those who watch it: counters, histograms, logs |
//! | `line` | who waits for a lock inside this process: first come, first served |
//! | `client`, `guard`, `config`, `node_url`, [`error`], `clock` | what users of the library see |
//! | `core` | what a client and its guards share, and the loop that every operation runs through |
//! | `origin` | which process a client belongs to: in a forked child it works no more |
//! | `callback` | calls into the code of whoever uses the crate |
//! | `fencing`, `inspect` | what is seen of a lock beyond its guard: its number, its holder |
//! | `watchdog` | keeps locks alive, and tells of losses |
//! | `engine` | Redlock itself: state machines without sockets, clock or entropy |
//! | `node` | the conversation with the nodes: bytes in, bytes out |
//! | `resp` | RESP2 and RESP3 syntax |
//! | `net` | sockets, and whose turn it is to drive them |
//! | `embedded` | Redis-like nodes inside the process, with the feature of that name |
//!
//! [Redlock algorithm]: https://redis.io/docs/latest/develop/use/patterns/distributed-locks/

mod callback;
mod client;
mod clock;
mod config;
mod core;
#[cfg(feature = "embedded")]
pub mod embedded;
mod engine;
pub mod error;
pub mod event;
mod fencing;
mod guard;
mod node_url;
#[doc = include_str!("guarantees.md")]
pub mod guarantees {}
mod inspect;
mod name;
mod net;
mod node;
mod owner_process;
mod released;
mod resp;
mod wait_queue;
mod watchdog;

pub use client::{CancelHandle, LockClient, LockRequest};
pub use config::Builder;
pub use error::{
    ConfigError, Error, ExtendError, ForceReleaseError, InspectError, LockError, LockLost,
    NoQuorum, NodeError, ReleaseError, SpawnError,
};
pub use event::Event;
pub use fencing::FencingToken;
pub use guard::LockGuard;
pub use inspect::{Holder, Inspection, LockState, NodeView};
pub use name::Name;
pub use node::NodeStatus;
pub use released::Released;

/// The pure layers, open to this crate's own tests, fuzz targets and benches. Not a public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::clock::Time;
    #[cfg(feature = "embedded")]
    pub mod embedded {
        pub use crate::embedded::model::*;
    }
    pub mod node_url {
        pub use crate::node_url::*;
    }
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod node {
        pub use crate::node::*;
    }
    pub mod resp {
        pub use crate::resp::*;
    }
}

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
