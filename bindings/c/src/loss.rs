//! The callbacks of a lock that was lost. Rust's own may still run when the guard is gone; C frees
//! what a callback uses, so here a guard is gone only when none of them runs.

use crate::last_error::c_text;
use redlatch::{Error, LockGuard, LossReason};
use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// `redlatch_lost_callback`. An exception that leaves it ends the process.
pub type Callback = extern "C-unwind" fn(*mut c_void, *const c_char);

/// Whether the callbacks of one guard may run, and whether one does.
#[derive(Default)]
pub(crate) struct Gate {
    is_closed: AtomicBool,
    running: Mutex<()>,
}

thread_local! {
    /// The gate of the callback that runs in this thread.
    static INSIDE: Cell<*const Gate> = const { Cell::new(ptr::null()) };
}

impl Gate {
    fn run(&self, call: impl FnOnce()) {
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_closed.load(Ordering::SeqCst) {
            INSIDE.set(self);
            call();
            INSIDE.set(ptr::null());
        }
    }

    /// After this no callback begins.
    pub(crate) fn refuse(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// After this no callback begins, and none runs but the one that calls this.
    pub(crate) fn close(&self) {
        self.refuse();
        if !ptr::eq(INSIDE.try_with(Cell::get).unwrap_or(ptr::null()), self) {
            drop(self.running.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// In a forked child, the thread that runs a callback does not exist, and is not waited for.
pub(crate) fn is_of_other_process(lock: &LockGuard) -> bool {
    let held = lock.ensure_held();
    matches!(held, Err(Error::Lost(lost)) if lost.reason() == LossReason::OtherProcess)
}

/// What a callback is given.
struct Data(*mut c_void);

// SAFETY: the header says that the callback runs in another thread.
unsafe impl Send for Data {}

pub(crate) fn on_lost(
    lock: &LockGuard,
    gate: &Arc<Gate>,
    callback: Callback,
    data: *mut c_void,
) -> Result<(), Error> {
    let gate = Arc::clone(gate);
    let data = Data(data);
    lock.on_lost(move |lost| {
        let Data(data) = { data };
        let why = c_text(&lost.to_string());
        gate.run(|| callback(data, why.as_ptr()));
    })
}
