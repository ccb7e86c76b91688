//! Redis-like nodes inside the process.

mod command;
mod expiry;
mod info;
mod keyspace;
mod options;
mod reply;
mod scripts;
mod session;
mod strings;

/// The pure model of a node, for a simulator and for the test that holds it against Redis.
pub(crate) mod model {
    pub use super::keyspace::{Keyspace, LiveKey};
    pub use super::options::Options;
    pub use super::reply::{OwnedReply, Protocol};
    pub use super::session::ConnectionState;
}
