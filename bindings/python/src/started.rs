//! Calls that go on without a thread of Python's, which is told when they have ended: waits of
//! tasks, of greenlets, and of the main thread, which has to run handlers of signals meanwhile.
//!
//! What must stay true:
//!
//! * What a call was granted goes to whoever fetches it, or is given back: also if the call is
//!   cancelled in the same moment, or nobody can be told any more.
//! * A call that nobody refers to any more is cancelled.
//! * Whoever is told only hands that over: it runs in the thread of the library's callbacks, where
//!   the next one waits for it.

use crate::calls::{Running, attached, contained, is_ending, undisturbed};
use crate::errors::{bug, no_thread, raise};
use pyo3::prelude::*;
use redlatch::{CancelToken, Error};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{mem, process, thread};

/// How a call has ended, as what it returns or raises. Dropped, it gives back what was granted.
pub(crate) type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

enum State {
    /// It goes on. Whoever waits for it is told by this.
    Running(Option<Py<PyAny>>),
    Ended(Outcome),
    /// It has not begun, as no thread can be started.
    Refused(Outcome),
    /// Its outcome was fetched, or nobody wants it any more.
    Over,
}

/// A call that goes on. Without the GIL, the mutex is taken for a moment; a thread that has the GIL
/// asks for the process first.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct StartedCall {
    process: u32,
    token: CancelToken,
    state: Arc<Mutex<State>>,
}

/// The end of a call, for the thread in which it ends.
pub(crate) struct CallEnd {
    state: Arc<Mutex<State>>,
    /// The interpreter waits for it when it ends.
    _running: Running,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn replace(state: &Mutex<State>, new: State) -> State {
    mem::replace(&mut *lock(state), new)
}

impl StartedCall {
    /// Begins a call: `begin` gets the token that cancels it, and what is told how it has ended.
    pub(crate) fn begin(
        py: Python<'_>,
        begin: impl FnOnce(&CancelToken, CallEnd) + Send,
    ) -> PyResult<Self> {
        let call = Self {
            process: process::id(),
            token: CancelToken::new(),
            state: Arc::new(Mutex::new(State::Running(None))),
        };
        let end = CallEnd {
            state: Arc::clone(&call.state),
            _running: Running::new(),
        };
        undisturbed(py, || begin(&call.token, end))?;
        Ok(call)
    }

    /// Begins a call that waits in a thread of its own.
    pub(crate) fn in_thread(
        py: Python<'_>,
        call: impl FnOnce(&CancelToken) -> Outcome + Send + 'static,
    ) -> PyResult<Self> {
        Self::begin(py, |token, end| {
            let token = token.clone();
            let end = Arc::new(end);
            let end_in_thread = Arc::clone(&end);
            let builder = thread::Builder::new().name("redlatch-call".to_owned());
            let started = builder.spawn(move || end_in_thread.set(call(&token)));
            if let Err(error) = started {
                end.refuse(Box::new(move |py| Err(no_thread(py, &error))));
            }
        })
    }

    /// A forked child may have a copy of a mutex that is taken; its parent goes on with the call.
    fn is_forked(&self) -> bool {
        self.process != process::id()
    }
}

impl CallEnd {
    /// The call has ended so.
    pub(crate) fn set(&self, outcome: Outcome) {
        let mut state = lock(&self.state);
        let State::Running(wake) = &mut *state else {
            return;
        };
        let wake = wake.take();
        *state = State::Ended(outcome);
        drop(state);
        if let Some(wake) = wake {
            self.tell(wake);
        }
    }

    /// The call has not begun.
    pub(crate) fn refuse(&self, outcome: Outcome) {
        *lock(&self.state) = State::Refused(outcome);
    }

    fn tell(&self, wake: Py<PyAny>) {
        let mut is_told = false;
        if is_ending() {
            // Nobody comes back from a call any more. Freed, it might free tasks that wait, of
            // which asyncio would complain.
            mem::forget(wake);
        } else {
            attached(|py| {
                is_told = wake.bind(py).call0().is_ok();
                drop(wake);
                Ok(())
            });
        }
        if !is_told {
            // Its loop may be closed: nobody fetches it.
            drop(replace(&self.state, State::Over));
        }
    }
}

impl Drop for CallEnd {
    /// Where nothing was said of the end, there was a panic.
    fn drop(&mut self) {
        self.set(Box::new(|py| Err(bug(py, "a call has ended by a panic"))));
    }
}

#[pymethods]
impl StartedCall {
    /// Has ``wake`` called once the call has ended, in a thread of the library. ``False``: it has
    /// ended already.
    fn wake_by(&self, wake: Py<PyAny>) -> bool {
        if self.is_forked() {
            return false;
        }
        let mut state = lock(&self.state);
        let is_running = matches!(*state, State::Running(_));
        if is_running {
            *state = State::Running(Some(wake));
        }
        is_running
    }

    /// Whether no thread can be started for such calls, so that it has not begun.
    #[getter]
    fn is_refused(&self) -> bool {
        !self.is_forked() && matches!(*lock(&self.state), State::Refused(_))
    }

    /// What the call returns, or raises. To be called once, after its end.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if self.is_forked() {
            return Err(raise(py, &Error::OtherProcess));
        }
        match replace(&self.state, State::Over) {
            State::Ended(outcome) | State::Refused(outcome) => contained(py, || outcome(py)),
            State::Running(_) | State::Over => {
                undisturbed(py, || self.token.cancel())?;
                Err(raise(py, &Error::Cancelled))
            }
        }
    }

    /// Nobody wants the outcome any more: the call ends, and gives back what it is granted.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        undisturbed(py, || self.give_up())
    }
}

impl StartedCall {
    fn give_up(&self) {
        if self.is_forked() {
            return;
        }
        match replace(&self.state, State::Over) {
            State::Running(_) => self.token.cancel(),
            State::Ended(_) | State::Refused(_) | State::Over => {}
        }
    }
}

impl Drop for StartedCall {
    fn drop(&mut self) {
        if self.is_forked() || matches!(*lock(&self.state), State::Over) {
            return;
        }
        let _ = Python::try_attach(|py| self.cancel(py));
        // Python has ended.
        self.give_up();
    }
}
