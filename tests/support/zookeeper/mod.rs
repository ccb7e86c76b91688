//! Real ZooKeeper servers: ensembles of `java` processes, each server with its own directory and
//! free loopback ports, and links between them that a test can hold or cut.
//!
//! ```no_run
//! # fn test() {
//! let zookeeper = support::needs_zookeeper!();
//! let mut ensemble = zookeeper.start(3);
//! let leader = ensemble.leader();
//! ensemble[leader].kill();
//! # }
//! ```
//!
//! No server outlives the tests: dropping an [`Ensemble`] kills its servers by their process ids,
//! and if the test process ends first, the kernel kills them (see `process.rs`).

mod ensemble;
mod installed;
mod link;
mod links;
mod server;
mod shared;
mod snapshot;
mod words;

pub use ensemble::{Ensemble, EnsembleBuilder};
pub use installed::{Installed, installed};
pub use link::{Direction, Link};
pub use links::Links;
pub use server::Server;
pub use shared::Shared;
pub use snapshot::Snapshot;
pub use words::{Role, ask};
