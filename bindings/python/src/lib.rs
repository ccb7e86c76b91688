//! `redlatch._native`: the calls of redlatch for Python, blocking and [started]. What a program
//! imports is the package in `python/redlatch`, which adds what Python alone has: context managers
//! of asyncio and trio, decorators, signals during a wait.
//!
//! No rule about a lock is here. What must stay true:
//!
//! * Whatever asks a node runs without the GIL ([`calls::detached`]).
//! * No panic crosses into Python ([`calls::contained`], below which all calls of the library are),
//!   and nothing of Python is imported after this module was ([`classes`]): the interpreter may be
//!   ending.
//! * A mutex is taken only after asking for the process: a forked child may have a copy of one that
//!   a thread held which does not exist there.
//! * Code of the user's ([`events`], `on_lost`) runs in threads of Python's alone, never within a
//!   call, and never in the thread that extends locks: that must not wait for the GIL.
//! * While the interpreter ends, no thread has code of Python, or the end of a call, above a frame
//!   of Rust's ([`calls::in_python`], [`calls::attached`]): Python would unwind that.

mod arguments;
mod calls;
mod classes;
mod client;
mod errors;
mod events;
mod jobs;
mod lock;
mod registers;
mod started;
mod testing;
mod views;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use arguments::limit;
    #[pymodule_export]
    use calls::{Callback, CallingThread, end, forked};
    #[pymodule_export]
    use client::{Client, resume};
    #[pymodule_export]
    use events::Records;
    #[pymodule_export]
    use jobs::{Candidacy, OncePerCall, forget, leader};
    #[pymodule_export]
    use lock::Lock;
    #[pymodule_export]
    use registers::{Register, Version, form_registers, register};
    #[pymodule_export]
    use started::StartedCall;
    #[pymodule_export]
    use testing::{Ensemble, Nodes};
    #[pymodule_export]
    use views::{Seen, force_release, inspect, locks, nodes};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        classes::classes(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
