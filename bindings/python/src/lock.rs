//! A lock that is held.

use crate::arguments::Seconds;
use crate::calls::{Callback, attached, contained, detached, in_python, undisturbed};
use crate::classes::classes;
use crate::errors::{lost_lock, raise, released};
use crate::started::{Outcome, StartedCall};
use crate::views::name;
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};
use redlatch::{Error, LockGuard};
use std::ffi::CString;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A lock that is held: until it is released, lost, or not referred to any more, which a
/// ``ResourceWarning`` tells.
// Its `__enter__` is in `redlatch._blocks`.
#[pyclass(frozen, weakref, module = "redlatch")]
pub(crate) struct Lock {
    process: u32,
    /// Of which client it is.
    #[pyo3(get, name = "_client")]
    client: u64,
    /// Whether other readers may hold it beside this one.
    #[pyo3(get, name = "_is_shared")]
    is_shared: bool,
    names: Vec<Vec<u8>>,
    /// The number by which a resource rejects a stale writer, if ``fenced`` was asked for.
    #[pyo3(get)]
    fencing_token: Option<u64>,
    /// Which slot of ``one_of`` it is, from 0.
    #[pyo3(get)]
    slot: Option<u32>,
    /// Whether a block holds it, or has held it: its end is that of the lock.
    is_in_block: AtomicBool,
    /// Whether the block has been left: its end may still be on its way to the nodes.
    has_left_block: AtomicBool,
    /// Until it is released. Its mutex may be held for a round of the nodes, that of `extend`:
    /// threads that have the GIL give it back before they wait for it.
    guard: Mutex<Option<LockGuard>>,
    /// Those of `on_lost`. They are kept here, where the garbage collector sees them: a bound
    /// method of the lock's owner would keep the lock for ever. The mutex is taken with the GIL
    /// only.
    callbacks: Mutex<Vec<Arc<Py<PyAny>>>>,
}

/// How a call has ended that takes a lock of this client.
pub(crate) fn outcome(
    taken: Result<Option<LockGuard>, Error>,
    client: u64,
    is_shared: bool,
) -> Outcome {
    Box::new(move |py| match taken {
        Ok(guard) => guard
            .map(|guard| Lock::new(guard, client, is_shared))
            .into_py_any(py),
        Err(error) => Err(raise(py, &error)),
    })
}

impl Lock {
    pub(crate) fn new(guard: LockGuard, client: u64, is_shared: bool) -> Self {
        Self {
            process: process::id(),
            client,
            is_shared,
            names: guard
                .resources()
                .map(|name| name.as_bytes().to_vec())
                .collect(),
            fencing_token: guard.fencing_token().map(redlatch::FencingToken::as_u64),
            slot: guard.slot(),
            is_in_block: AtomicBool::new(false),
            has_left_block: AtomicBool::new(false),
            guard: Mutex::new(Some(guard)),
            callbacks: Mutex::default(),
        }
    }

    /// A child of the process that took the lock may have a copy of a mutex that is taken.
    fn is_forked(&self) -> bool {
        self.process != process::id()
    }

    fn guard(&self) -> Result<MutexGuard<'_, Option<LockGuard>>, Error> {
        if self.is_forked() {
            return Err(Error::OtherProcess);
        }
        Ok(self.guard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What ends the lock takes its guard first: others ask meanwhile whether it is held.
    fn taken(&self) -> Result<Option<LockGuard>, Error> {
        Ok(self.guard()?.take())
    }

    /// Without the GIL. `None`: the lock was released.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut LockGuard) -> Result<T, Error> + Send,
    ) -> PyResult<Option<T>> {
        detached(py, || self.guard()?.as_mut().map(call).transpose())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut guard = self
            .guard
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let is_forked = self.is_forked();
        let _ = Python::try_attach(|py| {
            let was_held = undisturbed(py, || {
                let guard = guard.take();
                // In a forked child, it is the parent's.
                !is_forked && guard.is_some_and(|guard| guard.ensure_held().is_ok())
            })?;
            if was_held { self.warn(py) } else { Ok(()) }
        });
        // Python has ended.
        drop(guard);
    }
}

impl Lock {
    /// Warns as Python does of a file that nobody has closed: who did not keep the lock may believe
    /// that it is held.
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        contained(py, || {
            // This may be amid an exception.
            let raised = PyErr::take(py);
            let text = format!(
                "unreleased lock {}: nothing refers to it any more, so it was released; keep what \
                 lock() or try_lock() returns",
                self.shown_names(py)?
            );
            let kind = py.get_type::<PyResourceWarning>();
            let text = CString::new(text.replace('\0', "?"))?;
            in_python(py, || {
                if let Err(error) = PyErr::warn(py, &kind, &text, 1) {
                    error.write_unraisable(py, None);
                }
            });
            if let Some(raised) = raised {
                raised.restore(py);
            }
            Ok(())
        })
    }

    fn shown_names(&self, py: Python<'_>) -> PyResult<String> {
        let names: Vec<String> = self
            .names(py)
            .iter()
            .map(|name| name.repr()?.extract())
            .collect::<PyResult<_>>()?;
        Ok(names.join(", "))
    }
}

#[pymethods]
impl Lock {
    /// Raises ``LockLost`` if the lock is not held any more. Asks no node, and takes less than a
    /// microsecond: call it before each step that must not run twice.
    fn ensure_held(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |guard| guard.ensure_held())?
            .ok_or_else(|| released(py))
    }

    /// Whether the lock is still held. Asks no node.
    #[getter]
    fn is_held(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.remaining(py)? > 0.0)
    }

    /// For how many seconds the lock is certainly held; 0 if it is not. Asks no node.
    #[getter]
    fn remaining(&self, py: Python<'_>) -> PyResult<f64> {
        if self.is_forked() {
            return Ok(0.0);
        }
        let left = self.with(py, |guard| Ok(guard.remaining()))?;
        Ok(left.map_or(0.0, |left| left.as_secs_f64()))
    }

    /// Sets the rest of its time, of a lock that is not kept alive. Other threads that ask whether
    /// the lock is held wait for the end of this.
    ///
    /// Raises ``LockLost``; or ``NoQuorum``, and the lock is held as before.
    fn extend(&self, py: Python<'_>, ttl: Seconds) -> PyResult<()> {
        self.with(py, |guard| guard.extend(ttl.0))?
            .ok_or_else(|| released(py))
    }

    /// Releases the lock on the nodes. Raises ``LockLost`` if it was lost before.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let done = detached(py, || self.taken()?.map(LockGuard::release).transpose())?;
        done.ok_or_else(|| released(py))
    }

    /// Gives it up without releasing it: it ends with its ttl.
    fn let_expire(&self, py: Python<'_>) -> PyResult<()> {
        let done = detached(py, || {
            Ok::<_, Error>(self.taken()?.map(LockGuard::let_expire))
        })?;
        done.ok_or_else(|| released(py))
    }

    /// Gives the lock to another process, which calls ``Client.resume`` with this text.
    #[pyo3(name = "into_token")]
    fn token(&self, py: Python<'_>) -> PyResult<String> {
        let taken = detached(py, || self.taken()?.map(LockGuard::into_token).transpose())?;
        match taken {
            Some(token) => Ok(token.to_string()),
            None => Err(released(py)),
        }
    }

    /// Called by `redlatch._blocks` as a block of it begins. `false`: another one has begun.
    #[pyo3(name = "_begin_block")]
    fn begin_block(&self) -> bool {
        !self.is_in_block.swap(true, Ordering::SeqCst)
    }

    /// Called before the call that ends the block, which may wait for a thread.
    #[pyo3(name = "_leave_block")]
    fn leave_block(&self) {
        self.has_left_block.store(true, Ordering::SeqCst);
    }

    #[getter(_has_left_block)]
    fn has_left_block(&self) -> bool {
        self.has_left_block.load(Ordering::SeqCst)
    }

    /// The names of the locks: one, unless several were taken at once.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        self.names.iter().map(|bytes| name(py, bytes)).collect()
    }

    /// Calls ``callback(error)`` in another thread as soon as the lock is lost, with the
    /// ``LockLost`` that ``ensure_held`` raises from then on.
    fn on_lost(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<()> {
        in_python(py, || classes(py)?.check_lost.call1(py, (&callback,)))?;
        let callback = Arc::new(callback);
        let kept = Arc::downgrade(&callback);
        self.callbacks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(callback);
        let watched = self.with(py, |guard| {
            guard.on_lost(move |lost| {
                attached(|py| {
                    let Some(callback) = kept.upgrade() else {
                        return Ok(());
                    };
                    let error = lost_lock(py, &lost).into_value(py);
                    let arguments = (&*callback, error, Callback::new());
                    classes(py)?.start_lost.call1(py, arguments).map(drop)
                });
            })
        });
        watched?.ok_or_else(|| released(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let callbacks = self.callbacks.try_lock();
        callbacks
            .iter()
            .flat_map(|all| all.iter())
            .try_for_each(|each| visit.call(&**each))
    }

    fn __clear__(&self) {
        let callbacks = self
            .callbacks
            .try_lock()
            .map(|mut all| std::mem::take(&mut *all));
        drop(callbacks); // which may run code of Python: without the mutex
    }

    /// Raises if the lock was lost before the block ended well: it may not have been alone. That
    /// too few nodes have answered the release is not a loss. A block that a forked child leaves
    /// releases nothing: the lock is its parent's.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match undisturbed(py, || self.taken()?.map_or(Ok(()), LockGuard::release))? {
            Err(error @ Error::Lost(_)) if kind.is_none() => Err(raise(py, &error)),
            _ => Ok(()),
        }
    }

    /// As [`__exit__`](Self::__exit__), as a call that goes on.
    #[pyo3(name = "_start_exit")]
    fn start_exit(&self, py: Python<'_>, kind: &Bound<'_, PyAny>) -> PyResult<StartedCall> {
        let has_failed = !kind.is_none();
        StartedCall::begin(py, |_, end| {
            let Ok(Some(guard)) = self.taken() else {
                return end.set(Box::new(|py| Ok(py.None())));
            };
            guard.release_async().then(move |released| {
                end.set(Box::new(move |py| match released {
                    Err(error @ Error::Lost(_)) if !has_failed => Err(raise(py, &error)),
                    _ => Ok(py.None()),
                }));
            });
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let names = self.shown_names(py)?;
        Ok(format!(
            "<redlatch.Lock {names}, {:.1} s left>",
            self.remaining(py)?
        ))
    }
}
