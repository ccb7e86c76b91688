//! The ZooKeeper part of [redlatch](https://docs.rs/redlatch): the conversation with an ensemble,
//! without a socket, bytes in and bytes out. No interface is promised here: use that crate.
//!
//! [`jute`] is the encoding of numbers, texts and lists, and of the frames around them. [`message`]
//! is what is sent and received in these frames. [`path`] is where a lock is, and what its
//! contenders are called and in which order they stand, and [`shares`] what readers and permits are
//! called and which of them may be together. [`validity`] is for how long a session, and so a lock,
//! may be relied on. [`session`] is the conversation, over one connection after another,
//! [`contender`] what one client does to get a lock, to hold it and to leave it, and
//! [`lock_table`] all locks of one client over its session. [`queue_listing`] is who holds a lock
//! and who waits for it, and [`server_status`] what a server says about itself.
//!
//! Nothing here waits, reads a clock or draws a random number; times and random numbers are
//! arguments. Received bytes are not trusted: no bytes make a decoder panic or allocate, and a
//! connection whose bytes are wrong is closed.
//!
//! Terms, where ZooKeeper has its own: a *server* is a member of the *ensemble*, a *znode* is an
//! entry of its tree, a *session* is the client as the ensemble knows it, and an *ephemeral* znode
//! ends with the session that created it. A *zxid* is the number of a transaction.
//!
//! Source: `zookeeper.jute` and the classes of `org.apache.zookeeper.proto` of [ZooKeeper 3.8], and
//! bytes recorded from it.
//!
//! [ZooKeeper 3.8]: https://github.com/apache/zookeeper/tree/branch-3.8

#![allow(
    missing_docs,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "it has no interface: redlatch shows nothing of it"
)]

pub mod contender;
pub mod jute;
pub mod lock_table;
pub mod message;
pub mod path;
pub mod queue_listing;
pub mod server_status;
pub mod session;
pub mod shares;
pub mod validity;
