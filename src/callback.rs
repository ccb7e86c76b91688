//! Calls into users' code: their callbacks.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a user's code and catches its panic, where a panic must not continue: in the drop of a
/// guard while its thread panics, or in a thread that serves other locks as well.
pub(crate) fn contain(call: impl FnOnce()) {
    // The panic hook has reported the panic.
    let Err(thrown) = catch_unwind(AssertUnwindSafe(call)) else {
        return;
    };
    // The payload is the user's too, and dropping it may panic again.
    if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| drop(thrown))) {
        mem::forget(thrown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    /// A payload that panics when it is dropped.
    struct Twice;

    impl Drop for Twice {
        fn drop(&mut self) {
            panic!("and once more");
        }
    }

    #[test]
    fn a_panic_payload_may_panic_when_it_is_dropped() {
        contain(|| panic_any(Twice));
        contain(|| panic_any("a text"));
    }
}
