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

#[doc(inline)]
pub use redlatch_embedded::{Nodes, NodesBuilder};

#[cfg(feature = "zookeeper")]
#[cfg_attr(docsrs, doc(cfg(feature = "zookeeper")))]
#[doc(inline)]
pub use redlatch_embedded::{Ensemble, EnsembleBuilder};
