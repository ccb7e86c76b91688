//! Searches for histories in which a promise is broken: about the queue between processes
//! (`queue.rs`), about shares (`shares.rs`), about sets of two locks (`sets.rs`), and, with a model
//! of their own, about fencing tokens (`fencing.rs`). They decide in which order things happen,
//! step by step and message by message.
//!
//! The clients are a model. The nodes are embedded ones: what a command does, the library's own Lua
//! does (`embedded.rs`). A node is a small state that can be copied and compared, without a clock:
//! for each command it is written to an embedded node as keys, and read back (`keys.rs`). What no
//! state can express fails the search, so nothing that a script does is overlooked. Transitions
//! that were seen before are remembered (`server.rs`).
//!
//! Two clients on three nodes are searched exhaustively. Random walks go through histories of up to
//! eight clients on up to five nodes, in which waiters leave, clients and nodes die, messages are
//! lost, leases and reservations expire, and commands arrive after their connection has ended.
//! Waiters die one by one or in rows, and servers notice that their connection is gone or do not.
//! Others live and never claim, or too late, or reach a minority only. What must hold:
//!
//! - Never is there an exclusive holder beside another holder, never two holders of one slot, and
//!   never more holders of permits than permits.
//! - Without faults nobody is overtaken who had joined a majority before another one began, where
//!   they exclude each other: a writer by nobody, a reader by no writer, and a waiter for the only
//!   permit by no other one. Where there are several permits, a turn may split, so that another
//!   client is granted a permit first. This remains so with those faults that lose no place in a
//!   queue; and a waiter that was late and has come back is before all that it was before, except
//!   for those whose attempt was under way.
//! - When faults stop, and no holder of a share releases, those are served who can share with the
//!   holders and before whom nobody waits that they exclude.
//! - When faults stop, and everybody releases, every waiter is served that still lives and can take
//!   its turn, and nothing remains on the nodes. Until then, the lock does not lie free for long:
//!   see `schedule.rs`.
//!
//! Each [`Mistake`](mistake::Mistake) leaves out one rule of the protocol, and must be found. One
//! of a node is a change of the text of its scripts. Three rules have no mistake here, since no
//! walk shows that waiters need them now that nodes pass over those they have called: that a second
//! turn for a permit names one that a majority has free, that a round for a permit waits for all
//! nodes, and that a permit is given up that cannot be moved to its holder's slot.
//!
//! `REDLATCH_WALKS=1000000 REDLATCH_STATES=3000000 cargo test --release --test searches --
//! --nocapture` goes further than plain `cargo test` does; `tests/models/lib.rs` has more
//! variables.

mod client;
mod command;
mod embedded;
mod expect;
mod fair;
mod fault;
mod fencing;
mod grant;
mod keys;
mod kind;
mod mistake;
mod node;
mod pace;
mod possible_faults;
mod queue;
mod request;
mod schedule;
mod scheme;
mod search;
mod server;
mod sets;
mod shares;
mod slots;
mod steps;
mod token;
mod violation;
mod walk;
mod want;
mod world;
