//! How a lock was lost, as the calls on its guard say.

use redlatch::{ExtendError, LockGuard, LockLost, LossReason};

/// How the guard's lock was lost. `None` if it is held.
pub fn loss(guard: &LockGuard) -> Option<LossReason> {
    guard.ensure_held().err().map(reason)
}

/// How the lock was lost that was to be extended. `None` if it was extended, or is held as before.
pub fn loss_in(extension: Result<(), ExtendError>) -> Option<LossReason> {
    match extension {
        Err(ExtendError::Lost(lost)) => Some(lost.reason()),
        _ => None,
    }
}

/// The reason alone, without the lock's name.
#[expect(clippy::needless_pass_by_value, reason = "it goes into `map`")]
pub fn reason(lost: LockLost) -> LossReason {
    lost.reason()
}
