//! Notes that a thread is in the middle of a change, where it must not use a register.

use crate::error::RegisterError;
use std::cell::Cell;

thread_local! {
    /// Does this thread call a function that makes a change?
    static CHANGING: Cell<bool> = const { Cell::new(false) };
}

/// Ends the call of such a function, also if it panics.
pub(super) struct Changing;

impl Changing {
    pub(super) fn call<T>(body: impl FnOnce() -> T) -> T {
        CHANGING.set(true);
        let _ends = Self;
        body()
    }

    /// Refuses to use a register there: the thread would wait for itself.
    pub(super) fn check() -> Result<(), RegisterError> {
        if CHANGING.get() { Err(RegisterError::WithinChange) } else { Ok(()) }
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        CHANGING.set(false);
    }
}
