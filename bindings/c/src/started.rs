//! Calls that go on when the function that has started them returns, and that end in a callback.

use crate::Guard;
use crate::last_error::{Failure, Status, attempt};
use redlatch::{Error, LockGuard, Pending};
use std::ffi::c_void;
use std::sync::mpsc::{self, SendError};
use std::{process, ptr, thread};

/// `redlatch_done_callback`. An exception that leaves it ends the process.
pub type Done = extern "C-unwind" fn(*mut c_void, Status, *mut Guard);

/// What C has called when a call has ended.
pub(crate) struct End {
    done: Done,
    data: *mut c_void,
}

// SAFETY: the header says that the callback runs in another thread.
unsafe impl Send for End {}

impl End {
    pub(crate) fn new(done: Option<Done>, data: *mut c_void) -> Result<Self, Failure> {
        let done = done.ok_or_else(Failure::null)?;
        Ok(Self { done, data })
    }
}

/// A call that has been started: its end is told once, also if it panics, and this is dropped.
struct Started {
    end: Option<End>,
    process: u32,
}

impl Started {
    /// The text of a failure is the last one of this thread, as of any call.
    fn tell(&mut self, result: impl FnOnce() -> Result<Option<LockGuard>, Failure>) {
        let Some(End { done, data }) = self.end.take() else {
            return;
        };
        let mut guard = ptr::null_mut();
        let status = attempt(|| {
            guard = result()?.map_or(ptr::null_mut(), Guard::hand_out);
            Ok(())
        });
        done(data, status, guard);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // A forked child has a copy of what its parent waits for.
        if process::id() == self.process {
            self.tell(|| Err(Failure::panic()));
        }
    }
}

/// Begins a call. `guard` makes the result for C of its own. Unless this fails, `end` is told.
pub(crate) fn start<T: Send + 'static>(
    pending: Pending<T>,
    end: End,
    guard: impl FnOnce(T) -> Result<Option<LockGuard>, Failure> + Send + 'static,
) -> Result<(), Failure> {
    let mut started = Started {
        end: Some(end),
        process: process::id(),
    };
    let starter = thread::current().id();
    let (refuse, refusal) = mpsc::channel();
    pending.then(move |result: Result<T, Error>| {
        let result = result.map_err(Failure::from);
        let failure = match result {
            Err(failure) if thread::current().id() == starter => failure,
            result => return started.tell(|| guard(result?)),
        };
        // A call that cannot begin ends before `then` returns, while `refusal` exists. If it does
        // not, a callback has started the call, and this is a later callback in its thread.
        match refuse.send(failure) {
            Ok(()) => drop(started.end.take()),
            Err(SendError(failure)) => started.tell(|| Err(failure)),
        }
    });
    refusal.try_recv().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    type Told = Mutex<Vec<Status>>;

    extern "C-unwind" fn note(data: *mut c_void, status: Status, guard: *mut Guard) {
        assert!(guard.is_null());
        // SAFETY: each test passes one, and has it for longer than what calls this.
        let told = unsafe { &*data.cast::<Told>() };
        told.lock().expect("no test panics").push(status);
    }

    fn started(told: &Told, process: u32) -> Started {
        let data = ptr::from_ref(told).cast_mut().cast();
        let end = End::new(Some(note), data).ok();
        Started { end, process }
    }

    #[test]
    fn an_end_is_told_once_also_if_the_call_panics_and_never_in_a_forked_child() {
        let told = Told::default();
        started(&told, process::id()).tell(|| Err(Error::Cancelled.into()));
        started(&told, process::id()).tell(|| panic!("on purpose"));
        drop(started(&told, process::id()));
        drop(started(&told, process::id() + 1));
        let told = told.into_inner().expect("no test panics");
        assert_eq!(told, [Status::Cancelled, Status::Panic, Status::Panic]);
    }
}
