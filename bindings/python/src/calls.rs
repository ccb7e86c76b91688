//! Calls without the GIL, and their end; and that no panic leaves them.

use crate::arguments::Seconds;
use crate::client::Client;
use crate::errors::{bug, raise};
use pyo3::prelude::*;
use redlatch::Error;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use std::{mem, process, thread};

/// How many calls run without the GIL or are about to get it back, and callbacks are about to run.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// The interpreter ends: only the thread that ends it comes back from a call.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// It has ended, as far as callbacks are concerned: none is called any more.
static IS_OVER: AtomicBool = AtomicBool::new(false);

pub(crate) struct Running {
    process: u32,
}

impl Running {
    pub(crate) fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Self {
            process: process::id(),
        }
    }
}

/// A forked child has none of the calls of its parent's threads, and need not wait for them.
#[pyfunction]
pub(crate) fn forked() {
    RUNNING.store(0, Ordering::SeqCst);
}

impl Drop for Running {
    fn drop(&mut self) {
        // Where it began: a child that was forked amid it counts from 0.
        if self.process == process::id() {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Runs what calls the library. A panic is a bug, and becomes an exception that `except Exception`
/// catches: pyo3's own would not be.
pub(crate) fn contained<T>(py: Python<'_>, call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(call).unwrap_or_else(|text| Err(bug(py, &text)))
}

/// The error is the text of a panic.
fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|thrown| {
        let text = thrown
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| thrown.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("a panic without a text")
            .to_owned();
        // Dropping it may panic again.
        mem::forget(thrown);
        text
    })
}

/// Where a thread stays that must not come back to an interpreter that ends.
pub(crate) fn stay() -> ! {
    loop {
        thread::park();
    }
}

/// The thread of Python's that has this comes back from a call, also while the interpreter ends.
fn comes_back() -> bool {
    COMES_BACK.get() || !IS_ENDING.load(Ordering::SeqCst)
}

/// Runs what may run code of Python, and so lose the GIL and want it back, in a call of Python's:
/// such as the `__init__` of an exception, or the `__float__` of an argument. A thread that wants
/// the GIL while the interpreter ends would be ended amid this code. So from [`end`] on, others
/// begin with none of it, and that waits for those that have begun.
pub(crate) fn in_python<T>(py: Python<'_>, call: impl FnOnce() -> T) -> T {
    if !comes_back() {
        py.detach(|| stay());
    }
    let _running = Running::new();
    call()
}

/// Calls Python in a thread of the library's own, for a moment: it may start a thread of Python's,
/// as code of the user needs. [`end`] waits for that for a time only, and Python would then unwind
/// the stack of the thread, and run destructors of pyo3's without the GIL.
pub(crate) fn attached(call: impl FnOnce(Python<'_>) -> PyResult<()>) {
    let _running = Running::new();
    if is_over() {
        return;
    }
    COMES_BACK.set(true);
    Python::try_attach(|py| {
        if let Err(error) = call(py) {
            error.write_unraisable(py, None);
        }
    });
}

/// As long as this lives, which is while a callback runs, [`end`] waits.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Callback {
    _running: Running,
}

impl Callback {
    pub(crate) fn new() -> Self {
        Self {
            _running: Running::new(),
        }
    }
}

#[pymethods]
impl Callback {
    /// Called by its thread.
    fn begin(&self) {
        COMES_BACK.set(true);
    }
}

/// Runs a call that may ask nodes, while other threads of Python go on.
///
/// A thread that wants the GIL back while the interpreter ends would be ended by it amid this code.
/// So from [`end`] on, other threads stay here: they are daemons, and nobody waits for them.
///
/// `call` must not come back to Python: under gevent, another greenlet would go on with the stack
/// of this one below it.
pub(crate) fn undisturbed<T: Send>(py: Python<'_>, call: impl FnOnce() -> T + Send) -> PyResult<T> {
    let running = Running::new();
    let (result, _running) = py.detach(move || {
        let result = caught(call);
        if !comes_back() {
            drop((result, running));
            stay();
        }
        (result, running)
    });
    result.map_err(|text| bug(py, &text))
}

/// The same, of a call that may fail.
pub(crate) fn detached<T: Send, E: Into<Error> + Send>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    undisturbed(py, call)?.map_err(|error| raise(py, &error.into()))
}

/// Drops what the last reference of Python was to. That may send a request, and wait for threads of
/// the library; those may be in a callback, which needs the GIL.
pub(crate) fn let_go<T: Send>(value: T) {
    let mut value = Some(value);
    let _ = Python::try_attach(|py| undisturbed(py, || value = None));
    drop(value);
}

thread_local! {
    /// This thread ends the interpreter, or has a callback that the end waits for.
    pub(crate) static COMES_BACK: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn is_over() -> bool {
    IS_OVER.load(Ordering::SeqCst)
}

pub(crate) fn is_ending() -> bool {
    IS_ENDING.load(Ordering::SeqCst)
}

/// Cancels what waits, so that it leaves the nodes' queue; has the calls of other threads end where
/// they are; and waits for that for as long. `clients` returns those that there are: whoever uses
/// another one from now on finds it cancelled.
#[pyfunction]
pub(crate) fn end(py: Python<'_>, clients: &Bound<'_, PyAny>, limit: Seconds) -> PyResult<()> {
    COMES_BACK.set(true);
    IS_ENDING.store(true, Ordering::SeqCst);
    for client in clients.call0()?.extract::<Vec<Py<Client>>>()? {
        let _ = client.get().cancel(py);
    }
    let began = Instant::now();
    // What ends may be logged. After that, so may nothing: it could be amid that when all ends.
    for flag in [&IS_ENDING, &IS_OVER] {
        flag.store(true, Ordering::SeqCst);
        while RUNNING.load(Ordering::SeqCst) > 0 && began.elapsed() < limit.0 {
            py.detach(|| thread::sleep(Duration::from_millis(2)));
        }
    }
    Ok(())
}

/// The thread that makes it: for calls that run in another one.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct CallingThread(pub(crate) ThreadId);

#[pymethods]
impl CallingThread {
    #[new]
    fn new() -> Self {
        Self(thread::current().id())
    }
}
