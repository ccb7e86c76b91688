//! Registers: values that a majority of the nodes agrees on, read, changed and repaired by the
//! library's own loops (`registers`), over rounds and sessions of the library as for locks. And
//! transactions, whose sides are run by its loops as well.
//!
//! `history.rs` has what callers saw, and `order.rs` checks it. `ledger.rs` has the disks of the
//! sides of transactions, and checks those.

mod history;
mod ledger;
mod order;
mod shared;

use crate::task::{Line, Task};
pub(crate) use history::{Call, History, Id, Outcome, Seen};
pub(crate) use ledger::{Ledger, SIDES};
pub(crate) use order::check;
pub(crate) use shared::Shared;

use crate::error::RegisterError;
use crate::registers::register::Thread;
use history::{from_bytes, to_bytes};
use redlatch_registers::{
    Draft, Epoch, GROUP_REGISTER, Group, Member, MemberAddress, RegisterKeys, Stored,
};
use std::rc::Rc;

/// The beginning of the keys of all registers.
pub(crate) const PREFIX: &[u8] = b"registers/";

/// The group of the nodes.
pub(crate) const GROUP: u64 = 5;

/// The first register that has a record: the others are users'.
const RECORDS: u64 = 1 << 32;

/// The keys of the register with this name; the empty one is the group's.
fn keys(name: &[u8]) -> RegisterKeys {
    RegisterKeys::new(PREFIX, name)
}

/// The URL of this node.
pub(crate) fn url(node: usize) -> String {
    node.to_string()
}

/// The key of the mark of a node.
pub(crate) fn mark_key() -> Vec<u8> {
    keys(GROUP_REGISTER).mark.to_vec()
}

/// The key of what a node has accepted as the next epoch.
pub(crate) fn epoch_key() -> Vec<u8> {
    keys(GROUP_REGISTER).value.to_vec()
}

/// The marks of nodes that were made a group: the servers with these runs, of which some keep all
/// that they answer.
pub(crate) fn formed(run_ids: &[String], durable: &[bool]) -> Vec<Vec<u8>> {
    let place = |node| MemberAddress::new(node as u64 + 1, &url(node));
    let members = (0..run_ids.len()).map(place).collect();
    let epoch = Epoch {
        group: Group {
            id: GROUP,
            epoch: 1,
            token: 6,
        },
        members,
    };
    let marks = run_ids
        .iter()
        .zip(durable)
        .zip(1..)
        .map(|((run_id, is_durable), id)| {
            let run_id = run_id.clone();
            let is_durable = *is_durable;
            Member {
                epoch: epoch.clone(),
                run_id,
                id,
                is_durable,
            }
            .to_bytes()
            .to_vec()
        });
    marks.collect()
}

/// The number of the register that has the record of this transaction.
pub(crate) fn from_transaction(number: usize) -> u64 {
    RECORDS + number as u64
}

/// Begins a call of a thread.
pub(crate) fn begin(
    shared: &Rc<Shared>,
    worker: usize,
    register: u64,
    call: Call,
    id: Id,
) -> Task<(Id, Outcome)> {
    let line = Line::default();
    let thread = Thread {
        shared: Rc::clone(shared),
        line: line.clone(),
        worker,
    };
    Task::new(line, async move {
        (id, operate(&thread, register, call, id).await)
    })
}

async fn operate(thread: &Thread, number: u64, call: Call, id: Id) -> Outcome {
    let register = thread.register(number.to_string().as_bytes());
    let result = match call {
        Call::Read => {
            let value = register.read().await;
            value.map(|value| Outcome::Is(value.as_ref().map(seen)))
        }
        Call::Participate(call) => thread.participate(call).await,
        Call::Repair => thread.repair().await.map(Outcome::Repaired),
        _ => register.change(|draft| write(draft, call, id)).await,
    };
    result.unwrap_or_else(|error| match error {
        RegisterError::Unknown
        | RegisterError::NoQuorum {
            may_have_happened: true,
            ..
        } => Outcome::Unsure,
        RegisterError::Exhausted
        | RegisterError::OtherFormat { .. }
        | RegisterError::WithinChange
        | RegisterError::NoEntropy => unreachable!("{error}"),
        _ => Outcome::Failed,
    })
}

fn seen(value: &Stored) -> Seen {
    Seen {
        version: value.version().as_u64(),
        ids: from_bytes(value.bytes()),
        fence: value.fence().unwrap_or(0),
    }
}

/// Makes a change of a draft.
fn write(draft: &mut Draft, call: Call, id: Id) -> Outcome {
    let before = draft.current().map(seen);
    let token = match call {
        Call::Set(version) if version != before.as_ref().map(|it| it.version) => {
            return Outcome::Is(before);
        }
        Call::Fenced(token) if before.as_ref().is_some_and(|it| it.fence > token) => {
            return Outcome::Is(before);
        }
        Call::Delete => {
            draft.delete();
            return Outcome::Made {
                before,
                version: None,
            };
        }
        Call::Fenced(token) => Some(token),
        _ => None,
    };
    let mut ids = before
        .as_ref()
        .map_or(Vec::new(), |before| before.ids.clone());
    ids.push(id);
    let version = draft.put(to_bytes(&ids).into(), token);
    Outcome::Made {
        before,
        version: Some(version.as_u64()),
    }
}
