//! How a lock was lost, as the calls on its guard say.

use redlatch::{Error, LockGuard, LockLost, LossReason};

/// How the guard's lock was lost. `None` if it is held.
pub fn loss(guard: &LockGuard) -> Option<LossReason> {
    loss_in(guard.ensure_held())
}

/// How the lock was lost that was to be extended or checked. `None` if it is held.
pub fn loss_in(extension: Result<(), Error>) -> Option<LossReason> {
    match extension {
        Err(Error::Lost(lost)) => Some(lost.reason()),
        _ => None,
    }
}

/// The reason alone, without the lock's name.
#[expect(clippy::needless_pass_by_value, reason = "it goes into `map`")]
pub fn reason(lost: LockLost) -> LossReason {
    lost.reason()
}
