//! Redis-like nodes inside the process, for trying the library and for testing programs.
//!
//! [`Nodes`] starts as many as asked for, each on a port of 127.0.0.1, and lets a test do to them
//! what operations does to real ones: stop, restart without their keys, freeze. They speak RESP2
//! and RESP3 and know the commands that this library sends and the usual ones that a person would
//! type into `redis-cli`. They run no Lua but this library's own scripts, keep nothing on disk,
//! take no value above 64 KiB, and are no substitute for Redis or Valkey in production.
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
//! nodes.stop(0); // a minority is down: locks can still be had
//! let lock = client.try_lock("orders:42", ttl)?.expect("nobody else wants it");
//! lock.release()?;
//!
//! nodes.pause(1); // no majority answers any more: that is an error, not "taken"
//! assert!(client.try_lock("orders:42", ttl).is_err());
//!
//! nodes.resume(1);
//! nodes.restart(0)?; // back, on the same port, without its keys
//! # Ok(())
//! # }
//! ```
//!
//! Under the socket lies a model of one node that is a function from time and command to reply. A
//! conformance test holds that model against a redis-server 7.0.15, reply by reply, so what a test
//! sees here it would see there.
//!
//! | file | what it knows |
//! |---|---|
//! | `nodes.rs`, `server.rs` | several nodes; one node's thread and sockets |
//! | `inbound.rs`, `reply.rs` | bytes to commands; replies to bytes |
//! | `keyspace.rs`, `options.rs` | the model: keys, times to live, identity |
//! | `command.rs` | the table of commands and the refusals before one runs |
//! | `strings.rs`, `expiry.rs`, `scripts.rs`, `claims.rs`, `session.rs`, `info.rs` | the commands |

mod claims;
mod command;
mod expiry;
mod inbound;
mod info;
mod keyspace;
mod nodes;
mod options;
mod reply;
mod scripts;
mod server;
mod session;
mod strings;

pub use nodes::{Nodes, NodesBuilder};

/// The pure model of a node, for a simulator and for the test that holds it against Redis.
pub(crate) mod model {
    pub use super::keyspace::{Keyspace, LiveKey};
    pub use super::options::Options;
    pub use super::reply::{OwnedReply, Protocol};
    pub use super::session::ConnectionState;
}
