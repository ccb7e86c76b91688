//! Why the lock was not acquired: the text and the exit code.

use super::AcquireArguments;
use crate::exit::{self, Failure};
use crate::inspect::{holders_text, not_a_lock_text, shown};
use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{Holder, Inspection, LockClient, LockError, LockState, NoQuorum, NodeError};
use std::os::unix::ffi::OsStrExt;

/// Others hold the lock or wait for it. A refusal does not say which, so the nodes are asked.
pub(super) fn contended(client: &LockClient, arguments: &AcquireArguments) -> Failure {
    let seen = client.inspect(arguments.name.as_bytes()).ok();
    if let Some(failure) = seen.as_ref().and_then(|seen| not_a_lock(arguments, seen)) {
        return failure;
    }
    // Then this is no failure: on all machines but one, a job of cron has nothing to report.
    if arguments.conflict_exit_code == Some(exit::SUCCESS) {
        return Failure::silent(exit::SUCCESS);
    }
    let (code, text) = match &seen {
        Some(seen) if is_awaited(arguments, seen) => {
            (exit::AWAITED, "others wait for the lock and are served first".to_owned())
        }
        Some(seen) if seen.holder_count > 0 => {
            (exit::HELD, format!("another client holds the lock: {}", holders_text(seen)))
        }
        Some(Inspection { state: LockState::Free, .. }) => {
            (exit::HELD, "another client held the lock a moment ago".to_owned())
        }
        _ => (exit::HELD, "others hold the lock or wait for it".to_owned()),
    };
    named(arguments, arguments.conflict_exit_code.unwrap_or(code), &text)
}

/// Do only waiters keep this client from the lock, or from the share of it that it wants?
fn is_awaited(arguments: &AcquireArguments, seen: &Inspection) -> bool {
    let is_reader = |holder: &Holder| holder.slot.is_none();
    match &seen.state {
        LockState::Reserved => true,
        LockState::Free => seen.waiter_count > 0,
        LockState::Shared(holders) if seen.waiter_count > 0 => match arguments.permits {
            Some(count) => seen.holder_count < count as usize && !holders.iter().any(is_reader),
            None => arguments.shared && holders.iter().all(is_reader),
        },
        _ => false,
    }
}

/// The attempt failed.
pub(super) fn failed(
    client: &LockClient,
    arguments: &AcquireArguments,
    error: LockError,
) -> Failure {
    let is_quarantined =
        matches!(&error, LockError::NoQuorum(error) if error.quarantine().is_some());
    // A plain lock is refused where the key is of another type; others get this error.
    let is_wrong_type = matches!(&error, LockError::NoQuorum(error) if is_wrong_type(error));
    let is_unclear = is_quarantined || is_wrong_type;
    let seen = is_unclear.then(|| client.inspect(arguments.name.as_bytes()));
    if let Some(failure) = seen.and_then(Result::ok).and_then(|seen| not_a_lock(arguments, &seen)) {
        return failure;
    }
    let failed = Failure::from(error);
    if is_quarantined { named(arguments, failed.code, &failed.text) } else { failed }
}

fn is_wrong_type(error: &NoQuorum) -> bool {
    error.reports().iter().any(|report| match &report.answer {
        NodeAnswer::Failed(NodeError::Server(error)) => error.kind == ServerErrorKind::WrongType,
        _ => false,
    })
}

fn not_a_lock(arguments: &AcquireArguments, seen: &Inspection) -> Option<Failure> {
    match seen.state {
        LockState::NotALock(kind) => Some(named(arguments, exit::FAILED, &not_a_lock_text(kind))),
        _ => None,
    }
}

/// A failure whose text begins with the lock's name.
pub(crate) fn named(arguments: &AcquireArguments, code: u8, text: &str) -> Failure {
    Failure::new(code, &format!("{}: {text}", shown(arguments.name.as_bytes())))
}
