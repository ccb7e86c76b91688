//! Reuse of the memory of locks, so that a lock needs no allocation besides its key's.
//!
//! Each thread keeps the memory of the last lock that it dropped, without its keys, for the next
//! lock that it takes.

use crate::engine::HeldLock;
use crate::watchdog::GuardedLock;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

thread_local! {
    static SPARE: Cell<Option<Arc<GuardedLock>>> = const { Cell::new(None) };
}

/// A guarded lock whose memory goes back to the thread that drops it last.
pub(super) struct ReusedLock(Option<Arc<GuardedLock>>);

impl ReusedLock {
    pub(super) fn new(granted: HeldLock) -> Self {
        // A thread that is about to end has no spare any more.
        let mut spare = SPARE.try_with(Cell::take).ok().flatten();
        let fresh = GuardedLock::new(granted);
        match spare.as_mut().and_then(Arc::get_mut) {
            Some(memory) => *memory = fresh,
            None => spare = Some(Arc::new(fresh)),
        }
        Self(spare)
    }

    /// A lock that other guards have as well.
    pub(super) fn of_others(held: Arc<GuardedLock>) -> Self {
        Self(Some(held))
    }
}

impl Deref for ReusedLock {
    type Target = Arc<GuardedLock>;

    fn deref(&self) -> &Arc<GuardedLock> {
        self.0.as_ref().expect("it is taken only when this is dropped")
    }
}

impl Drop for ReusedLock {
    fn drop(&mut self) {
        // Not if the watchdog still has a reference.
        if let Some(memory) = self.0.as_mut().and_then(Arc::get_mut) {
            memory.clear_keys();
            let _ = SPARE.try_with(|spare| spare.set(self.0.take()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::fixture::held_lock;

    #[test]
    fn a_thread_uses_the_memory_of_its_last_lock_again_unless_that_is_still_shared() {
        let first = ReusedLock::new(held_lock(1));
        let address = Arc::as_ptr(&first);
        drop(first);
        let second = ReusedLock::new(held_lock(2));
        assert_eq!(Arc::as_ptr(&second), address);
        assert_eq!(second.granted().token, held_lock(2).token);
        let shared = Arc::clone(&second);
        drop(second);
        let third = ReusedLock::new(held_lock(3));
        assert_ne!(Arc::as_ptr(&third), address);
        assert_eq!(shared.granted().token, held_lock(2).token, "the other reference is good");
    }
}
