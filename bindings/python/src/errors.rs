//! Errors as the exceptions of `redlatch._errors`.

use crate::calls::in_python;
use crate::classes::{Classes, classes};
use crate::views::{report, seconds};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use redlatch::{Error, LockLost, LossReason, NoQuorum, OncePerError, RegisterError};
use std::io;

const PARENTS_LOCK: &str = "the lock is held by the process that forked this one, and not here: \
    take one by a call of the client, which works in this process too";

/// An instance, and not a class with arguments: pyo3 would make that of them where it catches no
/// panic.
fn instance<'py>(
    py: Python<'py>,
    class: fn(&Classes) -> &Py<PyAny>,
    arguments: impl PyCallArgs<'py>,
) -> PyErr {
    let made = in_python(py, || {
        classes(py).and_then(|classes| class(classes).bind(py).call1(arguments))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Config(_)
        | Error::Resource(_)
        | Error::Ttl(_)
        | Error::LockToken(_)
        | Error::FencingToken(_)
        | Error::NotALock { .. }
        | Error::OncePer(OncePerError::Period { .. }) => config_error(py, text),
        Error::NoQuorum(why) => no_quorum(py, why, text),
        Error::Lost(lost) => lost_lock(py, lost),
        Error::Cancelled => instance(py, |of| &of.Cancelled, (text,)),
        // A client works in a forked child. So it is a lock.
        Error::OtherProcess => instance(py, |of| &of.OtherProcess, (PARENTS_LOCK,)),
        Error::Register(RegisterError::NoQuorum {
            error: why,
            may_have_happened: false,
        }) => no_quorum(py, why, text),
        Error::Register(error) => instance(
            py,
            |of| &of.RegisterError,
            (text, error.may_have_happened()),
        ),
        _ => instance(py, |of| &of.RedlatchError, (text,)),
    }
}

/// What was passed cannot be used.
pub(crate) fn config_error(py: Python<'_>, text: String) -> PyErr {
    instance(py, |of| &of.ConfigError, (text,))
}

fn no_quorum(py: Python<'_>, why: &NoQuorum, text: String) -> PyErr {
    let reports: PyResult<Vec<_>> = why.reports().iter().map(|node| report(py, node)).collect();
    match reports {
        Ok(reports) => {
            let quarantine = why.quarantine().map(seconds);
            let arguments = (text, reports, why.needed(), why.answered(), quarantine);
            instance(py, |of| &of.NoQuorum, arguments)
        }
        Err(error) => error,
    }
}

pub(crate) fn lost_lock(py: Python<'_>, lost: &LockLost) -> PyErr {
    let reason = match lost.reason() {
        LossReason::Expired => "expired",
        LossReason::Gone => "gone",
        LossReason::OtherProcess => "other_process",
        _ => "other",
    };
    instance(py, |of| &of.LockLost, (lost.to_string(), reason))
}

pub(crate) fn released(py: Python<'_>) -> PyErr {
    instance(
        py,
        |of| &of.RedlatchError,
        ("the lock was released already",),
    )
}

pub(crate) fn closed(py: Python<'_>) -> PyErr {
    instance(py, |of| &of.Cancelled, ("this client was closed",))
}

/// None can be started: there are too many.
pub(crate) fn no_thread(py: Python<'_>, error: &io::Error) -> PyErr {
    instance(
        py,
        |of| &of.RedlatchError,
        (format!("no thread for the job: {error}"),),
    )
}

/// A panic, which is a bug of the library and not of the program.
pub(crate) fn bug(py: Python<'_>, text: &str) -> PyErr {
    instance(
        py,
        |of| &of.RedlatchError,
        (format!("a bug of redlatch: {text}"),),
    )
}
