//! What Python passes: names as `str` or `bytes`, times as seconds or `timedelta`. What cannot be
//! used is a `ConfigError`, whatever it is.

use crate::calls::in_python;
use crate::errors::config_error;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDelta, PyList, PyString};
use std::time::Duration;

/// The longest text of what was passed that an error shows.
const SHOWN_MAX: usize = 60;

/// A name: of a lock, a register or an owner.
pub(crate) struct Name(pub(crate) Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for Name {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.cast::<PyString>() {
            return match text.extract::<String>() {
                Ok(text) => Ok(Self(text.into_bytes())),
                // Python has texts that are none: with half a surrogate.
                Err(error) => Err(config_error(given.py(), error.to_string())),
            };
        }
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Ok(Self(bytes.as_bytes().to_vec()));
        }
        Err(config_error(
            given.py(),
            format!("a name is str or bytes, not {}", kind(given)),
        ))
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
        let Ok(items) = given.try_iter() else {
            return given.extract().map(Self::One);
        };
        let names: PyResult<Vec<Name>> = items.map(|item| item?.extract()).collect();
        names.map(Self::Several)
    }
}

/// What kind of thing was passed: for what may have a password.
fn kind(given: Borrowed<'_, '_, PyAny>) -> String {
    if given.is_none() {
        return "None".to_owned();
    }
    given
        .get_type()
        .name()
        .map_or_else(|_| "this".to_owned(), |name| name.to_string())
}

/// What was passed, if that is short: a number in most cases. Bytes may be a secret.
fn shown(given: Borrowed<'_, '_, PyAny>) -> String {
    if given.is_instance_of::<PyBytes>() {
        return kind(given);
    }
    let shown = in_python(given.py(), || format!("{given:?}"));
    if shown.len() > SHOWN_MAX {
        kind(given)
    } else {
        shown
    }
}

/// Is it meant as a number? Python makes one of more: of `True`, which somebody passes who takes a
/// limit for a flag, and of numpy's `timedelta64`, whatever its unit is.
fn is_number(given: Borrowed<'_, '_, PyAny>) -> bool {
    let kind = given.get_type().name();
    kind.is_ok_and(|kind| {
        ["bool", "bool_", "timedelta64"]
            .iter()
            .all(|other| kind != *other)
    })
}

/// The number of seconds that was passed, whatever it is.
fn number_of_seconds(given: Borrowed<'_, '_, PyAny>) -> PyResult<f64> {
    let number = in_python(given.py(), || {
        if given.is_instance_of::<PyDelta>() {
            given
                .call_method0("total_seconds")
                .and_then(|seconds| seconds.extract())
        } else {
            given.extract()
        }
    });
    number
        .ok()
        .filter(|_| is_number(given))
        .ok_or_else(|| not_a_time(given))
}

fn not_a_time(given: Borrowed<'_, '_, PyAny>) -> PyErr {
    let text = "a time is a number of seconds, 0 or more, or a timedelta, not";
    config_error(given.py(), format!("{text} {}", shown(given)))
}

/// A time, in Python a number of seconds or a `timedelta`.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let time = Duration::try_from_secs_f64(number_of_seconds(given)?);
        time.map(Self).map_err(|_| not_a_time(given))
    }
}

/// For how long to wait. `None`: as long as it takes, in Python also infinity, and any time that is
/// too long for a clock.
#[derive(Clone, Copy)]
pub(crate) struct Timeout(pub(crate) Option<Duration>);

impl<'a, 'py> FromPyObject<'a, 'py> for Timeout {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.is_none() {
            return Ok(Self(None));
        }
        let seconds = number_of_seconds(given)?;
        if seconds.is_nan() || seconds < 0.0 {
            return Err(not_a_time(given));
        }
        Ok(Self(Duration::try_from_secs_f64(seconds).ok()))
    }
}

/// A timeout as a number of seconds, or `None`, for what Python itself asks of it.
#[pyfunction]
pub(crate) fn limit(timeout: Timeout) -> Option<f64> {
    timeout.0.map(|time| time.as_secs_f64())
}

/// An option and its name.
pub(crate) struct Given<'a, 'py> {
    pub(crate) name: &'a str,
    pub(crate) value: Bound<'py, PyAny>,
}

impl<'py> Given<'_, 'py> {
    /// `needed` is the text for who passed something else.
    pub(crate) fn get<T: FromPyObjectOwned<'py>>(&self, needed: &str) -> PyResult<T> {
        let py = self.value.py();
        let got: PyResult<T> = in_python(py, || self.value.extract().map_err(Into::into));
        got.map_err(|_| self.refused(needed))
    }

    /// As [`get`](Self::get), of a number.
    pub(crate) fn number<T: FromPyObjectOwned<'py>>(&self, needed: &str) -> PyResult<T> {
        let number = self.get(needed)?;
        if is_number(self.value.as_borrowed()) {
            Ok(number)
        } else {
            Err(self.refused(needed))
        }
    }

    fn refused(&self, needed: &str) -> PyErr {
        let text = format!("{}: {needed} is needed, not", self.name);
        config_error(
            self.value.py(),
            format!("{text} {}", shown(self.value.as_borrowed())),
        )
    }

    pub(crate) fn flag(&self) -> PyResult<bool> {
        self.get("True or False")
    }

    pub(crate) fn text(&self) -> PyResult<String> {
        self.get("a str")
    }

    pub(crate) fn time(&self) -> PyResult<Duration> {
        self.named().map(|Seconds(time)| time)
    }

    pub(crate) fn label(&self) -> PyResult<Name> {
        self.named()
    }

    /// Of what has a text of its own for who passed something else.
    fn named<T: FromPyObjectOwned<'py, Error = PyErr>>(&self) -> PyResult<T> {
        let py = self.value.py();
        let got: PyResult<T> = self.value.extract();
        got.map_err(|error| config_error(py, format!("{}: {}", self.name, error.value(py))))
    }
}

/// The URLs of a client. No text has what was passed, as a URL may have a password.
pub(crate) fn urls(nodes: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let list = nodes
        .cast::<PyList>()
        .map_err(|_| no_urls(nodes.as_borrowed()))?;
    list.iter()
        .map(|url| url.extract().map_err(|_| no_urls(url.as_borrowed())))
        .collect()
}

fn no_urls(given: Borrowed<'_, '_, PyAny>) -> PyErr {
    let text = "nodes are URLs, such as \"redis://10.0.0.1\", one or a list, each a str, not";
    config_error(given.py(), format!("{text} {}", kind(given)))
}
