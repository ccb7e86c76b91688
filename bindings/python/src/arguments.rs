//! What Python passes: names as `str` or `bytes`, times as seconds or `timedelta`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDelta, PyString};
use std::time::Duration;

/// A name: of a lock, a register or an owner.
pub(crate) struct Name(pub(crate) Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Name {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.cast::<PyString>() {
            return Ok(Self(text.extract::<String>()?.into_bytes()));
        }
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Self(bytes.as_bytes().to_vec()));
        }
        let kind = given.get_type().name()?.to_string();
        Err(PyTypeError::new_err(format!("a name is str or bytes, not {kind}")))
    }
}

impl AsRef<[u8]> for Name {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// One lock, or several at once.
pub(crate) enum Names {
    One(Name),
    Several(Vec<Name>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Names {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.is_instance_of::<PyString>() || given.is_instance_of::<PyBytes>() {
            return given.extract().map(Self::One);
        }
        let Ok(items) = given.try_iter() else { return given.extract().map(Self::One) };
        let names: PyResult<Vec<Name>> = items.map(|item| item?.extract()).collect();
        names.map(Self::Several)
    }
}

/// A time, in Python a number of seconds or a `timedelta`.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let seconds: f64 = if given.is_instance_of::<PyDelta>() {
            given.call_method0("total_seconds")?.extract()?
        } else {
            given.extract().map_err(|_| {
                PyTypeError::new_err(format!(
                    "a time is a number of seconds or a timedelta: {given:?}"
                ))
            })?
        };
        let time = Duration::try_from_secs_f64(seconds);
        time.map(Self).map_err(|_| PyValueError::new_err(format!("not a time: {seconds} s")))
    }
}

/// A time as a number, for what Python itself asks of it.
#[pyfunction]
pub(crate) fn seconds(time: Seconds) -> f64 {
    time.0.as_secs_f64()
}
