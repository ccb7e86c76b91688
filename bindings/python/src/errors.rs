//! Errors as the exceptions of `redlatch._errors`.

use crate::views::{report, seconds};
use pyo3::prelude::*;
use redlatch::{Error, LockLost, LossReason, NoQuorum, OncePerError, RegisterError};

mod exceptions {
    pyo3::import_exception!(redlatch._errors, RedlatchError);
    pyo3::import_exception!(redlatch._errors, ConfigError);
    pyo3::import_exception!(redlatch._errors, NoQuorum);
    pyo3::import_exception!(redlatch._errors, LockLost);
    pyo3::import_exception!(redlatch._errors, Cancelled);
    pyo3::import_exception!(redlatch._errors, OtherProcess);
    pyo3::import_exception!(redlatch._errors, RegisterError);
}

pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    use exceptions as of;
    let text = error.to_string();
    match error {
        Error::Config(_)
        | Error::Resource(_)
        | Error::Ttl(_)
        | Error::LockToken(_)
        | Error::FencingToken(_)
        | Error::OncePer(OncePerError::Period { .. }) => of::ConfigError::new_err(text),
        Error::NoQuorum(why) => no_quorum(py, why, text),
        Error::Lost(lost) => lost_lock(lost),
        Error::Cancelled => of::Cancelled::new_err(text),
        Error::OtherProcess => of::OtherProcess::new_err(text),
        Error::Register(RegisterError::NoQuorum { error: why, may_have_happened: false }) => {
            no_quorum(py, why, text)
        }
        Error::Register(error) => of::RegisterError::new_err((text, error.may_have_happened())),
        _ => of::RedlatchError::new_err(text),
    }
}

fn no_quorum(py: Python<'_>, why: &NoQuorum, text: String) -> PyErr {
    let reports: PyResult<Vec<_>> = why.reports().iter().map(|node| report(py, node)).collect();
    match reports {
        Ok(reports) => exceptions::NoQuorum::new_err((
            text,
            reports.into_iter().map(Bound::unbind).collect::<Vec<_>>(),
            why.needed(),
            why.answered(),
            why.quarantine().map(seconds),
        )),
        Err(error) => error,
    }
}

pub(crate) fn lost_lock(lost: &LockLost) -> PyErr {
    let reason = match lost.reason() {
        LossReason::Expired => "expired",
        LossReason::Gone => "gone",
        LossReason::OtherProcess => "other_process",
        _ => "other",
    };
    exceptions::LockLost::new_err((lost.to_string(), reason))
}

pub(crate) fn released() -> PyErr {
    exceptions::RedlatchError::new_err("the lock was released already")
}
