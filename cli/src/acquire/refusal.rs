//! Why the lock was not acquired: the text and the exit code.

use super::AcquireArguments;
use crate::exit::{self, Failure};
use crate::inspect::{holders_text, not_a_lock_text, shown};
use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{Error, Holder, Inspection, LockClient, LockState, NoQuorum, NodeError};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Others hold the lock or wait for it. A refusal does not say which, so the nodes are asked.
pub(crate) fn contended(client: &LockClient, arguments: &AcquireArguments) -> Failure {
    let found = look(client, arguments);
    if let Some(failure) = found.as_ref().and_then(not_a_lock) {
        return failure;
    }
    // Then this is not a failure: on all machines but one, a job of cron has nothing to report.
    if arguments.conflict_exit_code == Some(exit::SUCCESS) {
        return Failure::silent(exit::SUCCESS);
    }
    let (code, text) = match found.as_ref().map(|(_, seen)| seen) {
        Some(seen) if is_awaited(arguments, seen) => (
            exit::AWAITED,
            "others wait for the lock and are served first".to_owned(),
        ),
        Some(seen) if seen.holder_count > 0 => (
            exit::HELD,
            format!("another client holds the lock: {}", holders_text(seen)),
        ),
        Some(Inspection {
            state: LockState::Free,
            ..
        }) => (
            exit::HELD,
            "another client held the lock a moment ago".to_owned(),
        ),
        _ => (exit::HELD, "others hold the lock or wait for it".to_owned()),
    };
    let name = found.map_or(&*arguments.name, |(name, _)| name);
    named(name, arguments.conflict_exit_code.unwrap_or(code), &text)
}

/// The lock's name, and what the nodes say about it.
fn look<'a>(
    client: &LockClient,
    arguments: &'a AcquireArguments,
) -> Option<(&'a OsStr, Inspection)> {
    let names: Vec<&OsStr> = arguments.names().collect();
    let (index, seen) = super::look(client, &names).ok()??;
    Some((names[index], seen))
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
pub(crate) fn failed(client: &LockClient, arguments: &AcquireArguments, error: Error) -> Failure {
    let is_quarantined = matches!(&error, Error::NoQuorum(error) if error.quarantine().is_some());
    // A plain lock is refused where the key is of another type; others get this error.
    let is_wrong_type = matches!(&error, Error::NoQuorum(error) if is_wrong_type(error));
    let is_unclear = is_quarantined || is_wrong_type || matches!(error, Error::NotALock { .. });
    let found = if is_unclear {
        look(client, arguments)
    } else {
        None
    };
    if let Some(failure) = found.as_ref().and_then(not_a_lock) {
        return failure;
    }
    let failed = Failure::from(error);
    if is_quarantined {
        named(&arguments.name, failed.code, &failed.text)
    } else {
        failed
    }
}

fn is_wrong_type(error: &NoQuorum) -> bool {
    error.reports().iter().any(|report| match &report.answer {
        NodeAnswer::Failed(NodeError::Server(error)) => error.kind == ServerErrorKind::WrongType,
        _ => false,
    })
}

fn not_a_lock((name, seen): &(&OsStr, Inspection)) -> Option<Failure> {
    match seen.state {
        LockState::NotALock(kind) => Some(named(name, exit::FAILED, &not_a_lock_text(kind))),
        _ => None,
    }
}

/// A failure whose text begins with the lock's name.
pub(crate) fn named(name: &OsStr, code: u8, text: &str) -> Failure {
    Failure::new(code, &format!("{}: {text}", shown(name.as_bytes())))
}

/// The lock was lost.
pub(crate) fn lost(arguments: &AcquireArguments, text: &str) -> Failure {
    Failure::new(exit::LOST, &format!("{}: {text}", arguments.shown()))
}
