//! Registers of [redlatch](https://docs.rs/redlatch): small values that a majority of the nodes
//! agrees on, without leases and clocks. No interface is promised here: use that crate.
//!
//! This is `CASPaxos` (Rystsov 2018): each change of a register is one instance of Paxos, whose
//! value follows from the one before.
//!
//! ```text
//!                      first change                       next change of the same client
//!   Prepare(ballot) ──────────────▶ what was accepted ◀────────────────────────────────┐
//!        ▲                              │ the change                                   │
//!        │ another ballot came first    ▼                                              │
//!        └───────────────────────── Accept(ballot, value, next ballot) ──▶ a majority: made
//! ```
//!
//! - A node serves a ballot if it has promised no higher one: [`Ballot`] says what higher means.
//! - Each accept promises the ballot that follows, so the next change of the same client needs no
//!   prepare. Only a majority of accepts makes that a majority of promises.
//! - A read asks all nodes what they have accepted. If a majority names the same ballot, its value
//!   is current, and nothing is written. Otherwise the value with the highest ballot of a majority
//!   is accepted once more.
//! - An accept without an answer may have been carried out, now or later. The next prepare shows
//!   whether it was: a [value](Stored) remembers the ballots of its last changes.
//!
//! [`Change`] says what to send, and takes the answers. It sees no node, no clock and no random
//! number. Nor does [`Refill`], which gives a node that has forgotten its promises a vote again.

#![allow(
    missing_docs,
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "it has no interface; what redlatch shows of it is documented, and says what may grow"
)]

mod ballot;
mod change;
mod mark;
mod membership_view;
mod refill;
mod replies;
pub mod script;
pub mod transaction;
mod value;

pub use ballot::Ballot;
pub use ballot::Draft;
pub use ballot::Proposer;
pub use change::{Change, ChangeEnd, ChangeStep};
pub use mark::{Epoch, Group, JOINING, JoiningNode, Mark, Member, MemberAddress};
pub use mark::{memberships, no_vote};
pub use membership_view::{MembershipView, NoGroup, NodeMark};
pub use refill::{GROUP_REGISTER, Refill, RefillEnd, RefillStep};
pub use replies::Replies;
pub use script::{MarkStep, RegisterCommand, RegisterKeys, RegisterReply, RegisterRequest};
pub use value::{Accepted, COMBINED_MAX, InvalidValue, Stored, Version};
