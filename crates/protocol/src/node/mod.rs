//! The conversation with the nodes, without a socket: bytes in, bytes out.
//!
//! A [`Session`] is the conversation with one node, over one connection after another: the
//! greeting, the commands in flight, their replies, and the pending releases. [`Rounds`] holds the
//! sessions of all nodes and the open rounds: it sends a request to every node and counts the
//! votes. [`Driver`] does what an event loop does with them, in its order, over any [`Sockets`].
//! Only [`command`] knows the encoding of requests and the meaning of replies.
//!
//! Nothing here waits, reads a clock or draws a random number; time and seeds are arguments.

mod change;
pub mod command;
mod driver;
mod durability;
mod escapes;
mod examination;
#[cfg(test)]
mod fixture;
mod flight;
mod former;
pub mod handshake;
mod identity;
mod node_error;
mod other_protocol;
mod pending_releases;
mod report;
mod rounds;
pub mod script;
mod secret;
mod server_error;
mod server_facts;
mod session;
mod tls_error;
mod waiting;
mod warning;

pub use change::ChangeRecorder;
pub use change::{CHANGES_MAX, Changes, NodeChange, NodeState};
pub use driver::{Driver, Sockets};
pub use durability::Durability;
pub use examination::Finding;
pub use flight::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
pub use former::{FORMER_MAX, FormerConnections};
pub use handshake::Credentials;
pub use identity::Identity;
pub use node_error::OTHER_PROCESS;
pub use node_error::{NodeError, Phase};
pub use other_protocol::OtherProtocol;
pub use pending_releases::PENDING_MAX;
pub use report::{NodeAnswer, NodeReport, NodeStatus, QueueSupport};
pub use rounds::{RoundResult, Rounds, Votes};
pub use server_error::is_unseen;
pub use server_error::{ServerError, ServerErrorKind};
pub use server_facts::{
    ClockDifference, ClockReading, CrashLoss, Fsync, Memory, Persistence, Role,
};
pub use session::{Answer, Session, SessionOptions};
pub use tls_error::{TlsError, TlsErrorKind};
pub use warning::{Host, NodeWarning, Standards, judge};

/// Identifies a round that a caller waits for. No two rounds ever have the same ticket, so an
/// answer that arrives after the end of its round is not counted for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    slot: usize,
    serial: u64,
}

impl Ticket {
    /// A ticket, for code that uses a [`Session`] without [`Rounds`].
    pub const fn new(slot: usize, serial: u64) -> Self {
        Self { slot, serial }
    }

    /// The serial number given to [`new`](Self::new).
    pub const fn serial(self) -> u64 {
        self.serial
    }
}
