//! The conversation with the nodes, without a socket: bytes in, bytes out.
//!
//! A [`Session`] is the conversation with one node, over one connection after another: the
//! greeting, the commands in flight, their replies, and the pending releases. [`Rounds`] holds the
//! sessions of all nodes and the open rounds: it sends a request to every node and counts the
//! votes. [`Driver`] does what an event loop does with them, in its order, over any [`Sockets`].
//! Only [`command`] knows the encoding of requests and the meaning of replies.
//!
//! Nothing here waits, reads a clock or draws a random number; time and seeds are arguments.

pub mod command;
#[cfg(feature = "diagnostics")]
mod diagnostics;
mod driver;
mod escapes;
mod flight;
#[cfg_attr(not(feature = "groups"), path = "no_group.rs")]
mod group;
pub mod handshake;
mod node_error;
mod pending_releases;
mod report;
mod rounds;
mod scheme;
pub mod script;
mod secret;
mod server_error;
mod session;
mod shared_request;
mod stale_connections;
mod wrong_server;

#[cfg(feature = "diagnostics")]
pub use diagnostics::{
    ClockDifference, ClockReading, CrashLoss, Durability, Fsync, GroupStatus, Host, Memory,
    NodeStatus, NodeWarning, Persistence, Role, Standards, add_warnings,
};
#[cfg(feature = "groups")]
pub use diagnostics::{SentinelAnswer, SentinelAnswers, ServerClock};
pub use driver::{Conversation, Driver, Next, Sockets, Whereabouts};
pub use flight::{IN_FLIGHT_BYTES_MAX, IN_FLIGHT_MAX};
pub use group::GroupOptions;
#[cfg(feature = "groups")]
pub use group::{Checked, MARKER, Reign, ReignAnswer, history, tag_of};
pub use handshake::{Credentials, Identity};
pub use node_error::{NodeError, OTHER_PROCESS, OtherProtocol, Phase, TlsError, TlsErrorKind};
pub use pending_releases::PENDING_MAX;
pub use report::{CHANGES_MAX, ChangeRecorder, Changes, NodeAnswer, NodeChange, NodeReport};
pub use report::{NodeState, QueueSupport};
pub use rounds::{Ended, Message, Order, RoundOutcome, Rounds};
pub use scheme::{NodeKind, Scheme, SchemePlace};
pub use server_error::{ServerError, ServerErrorKind, is_unseen, presentable};
pub use session::{Answer, Hint, Session, SessionEvent, SessionOptions};
pub use shared_request::SharedRequest;
pub use stale_connections::{STALE_MAX, StaleConnections};
pub use wrong_server::WrongServer;

/// Identifies a round that a caller waits for. No two rounds ever have the same ticket, so an
/// answer that arrives after the end of its round is not counted for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The index of its entry, which later rounds use again.
    round: usize,
    serial: u64,
}

impl Ticket {
    /// A ticket, for code that uses a [`Session`] without [`Rounds`].
    pub const fn new(round: usize, serial: u64) -> Self {
        Self { round, serial }
    }

    /// The serial number given to [`new`](Self::new).
    pub const fn serial(self) -> u64 {
        self.serial
    }
}

#[cfg(test)]
mod fixture;
