//! The embedded servers of [redlatch](https://docs.rs/redlatch): Redis-like nodes and a
//! ZooKeeper-like ensemble inside the process. No interface is promised here: use that crate.
//!
//! Behind the socket is a model of one node: a function from time and command to reply. A
//! conformance test compares this model with a redis-server 7.0.15, reply by reply.
//!
//! | file | contents |
//! |---|---|
//! | `nodes.rs`, `server.rs` | the public API; a node's thread, which can be paused |
//! | `connection.rs`, `reply.rs` | bytes to commands; replies to bytes |
//! | `keyspace.rs` | the model of a node |
//! | `command.rs` | the table of commands, and the checks before one runs |
//! | `database.rs`, `hash.rs`, `zset.rs`, `session.rs` | the commands |
//! | `pushes.rs` | `CLIENT TRACKING`, `SUBSCRIBE` and `PUBLISH`: messages that are not replies |
//! | `lua.rs` | the script cache; the interpreter of Lua |
//! | `ensemble.rs` | with the feature `zookeeper`: a ZooKeeper-like ensemble, `Ensemble` |

#![allow(
    missing_docs,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "it has no interface; what redlatch shows of it is documented, and says what may grow"
)]

mod clock;
mod command;
mod connection;
mod database;
#[cfg(feature = "zookeeper")]
mod ensemble;
mod hash;
mod keyspace;
mod lua;
mod nodes;
mod pushes;
mod reply;
mod server;
mod session;
mod zset;

#[cfg(feature = "zookeeper")]
#[cfg_attr(docsrs, doc(cfg(feature = "zookeeper")))]
pub use ensemble::{Ensemble, EnsembleBuilder};
pub use nodes::{Nodes, NodesBuilder};

/// The pure model of a node, for the simulator and for the conformance test.
pub mod model {
    pub use super::keyspace::{Changes, Keyspace, LiveKey, Replication, Snapshot};
    pub use super::nodes::NodeOptions;
    pub use super::reply::{OwnedReply, Protocol};
    pub use super::session::ConnectionState;
}
