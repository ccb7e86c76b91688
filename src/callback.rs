//! Calls into what is not ours.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls what is not ours, and keeps a panic of it from going further: for places that a panic must
/// not come out of, such as the drop of a guard while its thread panics, or a thread that serves
/// others as well.
pub(crate) fn contain(call: impl FnOnce()) {
    // The panic has been reported, by the hook that sees every panic first.
    let Err(thrown) = catch_unwind(AssertUnwindSafe(call)) else { return };
    // What was thrown is not ours either, and to drop it may panic in its turn.
    if let Err(thrown) = catch_unwind(AssertUnwindSafe(|| drop(thrown))) {
        mem::forget(thrown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    /// What panics once more when it is dropped.
    struct Twice;

    impl Drop for Twice {
        fn drop(&mut self) {
            panic!("and once more");
        }
    }

    #[test]
    fn what_is_thrown_may_panic_when_it_is_dropped() {
        contain(|| panic_any(Twice));
        contain(|| panic_any("a text"));
    }
}
