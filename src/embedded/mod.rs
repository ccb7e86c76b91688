//! Redis-like nodes inside the process, for tests and for trying the library without a server.
//!
//! [`Nodes`] starts any number of nodes, each on a port of 127.0.0.1. A test can stop a node,
//! restart it without its keys, or pause it, and see what its program does then. The nodes speak
//! RESP2 and RESP3, and know the commands that this library sends and the usual ones for
//! `redis-cli`. They run Lua scripts by an interpreter of their own, for which the feature
//! `embedded` needs a C compiler. They keep nothing on disk and accept no value above 64 KiB. They
//! are no substitute for Redis or Valkey in production.
//!
//! With the feature `zookeeper`, `Ensemble` is the same for ZooKeeper: one server, whose sessions a
//! test can also end. [`guide::zookeeper`](crate::guide::zookeeper#setting-it-up) has an example.
//!
//! ```
//! use std::time::Duration;
//!
//! use redlatch::LockClient;
//! use redlatch::embedded::Nodes;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let nodes = Nodes::start(3)?;
//! let client = LockClient::new(nodes.urls())?;
//! let ttl = Duration::from_secs(10);
//!
//! nodes.stop(0); // a minority is down: locks can still be acquired
//! let lock = client.try_lock("orders:42", ttl)?.expect("the lock is free");
//! lock.release()?;
//!
//! nodes.pause(1); // no majority replies: an error, and not "the lock is held"
//! assert!(client.try_lock("orders:42", ttl).is_err());
//!
//! nodes.resume(1);
//! nodes.restart(0)?; // on the same port, without its keys
//! # Ok(())
//! # }
//! ```
//!
//! Behind the socket is a model of one node: a function from time and command to reply. A
//! conformance test compares this model with a redis-server 7.0.15, reply by reply.
//!
//! | file | contents |
//! |---|---|
//! | `nodes.rs`, `server.rs`, `connection.rs` | the public API; a node's thread; its sockets |
//! | `server_thread.rs`, `port.rs` | threads that can be paused; opening a port again |
//! | `inbound.rs`, `reply.rs` | bytes to commands; replies to bytes |
//! | `keyspace.rs`, `options.rs` | the model: databases, connections, identity |
//! | `database.rs`, `sorted_set.rs` | keys, values, times to live |
//! | `command.rs` | the table of commands, and the checks before one runs |
//! | `strings.rs`, `zset.rs`, `expiry.rs`, `scan.rs`, `session.rs`, `info.rs` | the commands |
//! | `tracking.rs` | `CLIENT TRACKING`: messages about keys that change |
//! | `channels.rs` | `SUBSCRIBE` and `PUBLISH` |
//! | `scripts.rs`, `lua.rs` | the script cache; the interpreter of Lua |
//! | `ensemble.rs` | with the feature `zookeeper`: a ZooKeeper-like ensemble, `Ensemble` |

mod channels;
mod command;
mod connection;
mod database;
#[cfg(feature = "zookeeper")]
mod ensemble;
mod expiry;
mod formation;
mod inbound;
mod info;
mod keyspace;
mod lua;
mod nodes;
mod options;
mod port;
mod reply;
mod scan;
mod scripts;
mod server;
mod server_thread;
mod session;
mod sorted_set;
mod strings;
mod tracking;
mod zset;

#[cfg(feature = "zookeeper")]
#[cfg_attr(docsrs, doc(cfg(feature = "zookeeper")))]
pub use ensemble::{Ensemble, EnsembleBuilder};
pub use nodes::{Nodes, NodesBuilder};

/// The pure model of a node, for the simulator and for the conformance test.
pub(crate) mod model {
    pub use super::keyspace::{Keyspace, LiveKey};
    pub use super::options::Options;
    pub use super::reply::{OwnedReply, Protocol};
    pub use super::session::ConnectionState;
}
