//! Registers: small values that a majority of the nodes agrees on.

use crate::arguments::{Given, Name};
use crate::calls::detached;
use crate::client::Client;
use crate::errors::raise;
use crate::views::{moment, view};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use redlatch::FencingToken;
use redlatch::register::Value;

/// A version of a value: equal if and only if it is the same.
#[pyclass(frozen, eq, hash, module = "redlatch._native")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Version(redlatch::register::Version);

#[pymethods]
impl Version {
    #[new]
    fn new(number: u64) -> Self {
        Self(redlatch::register::Version::from_u64(number))
    }

    /// For pickles.
    fn __getnewargs__(&self) -> (u64,) {
        (self.0.as_u64(),)
    }

    fn __repr__(&self) -> String {
        format!("<redlatch.Version {}>", self.0.as_u64())
    }
}

/// A value of up to 16 KiB that a majority of the nodes agrees on.
// It belongs to a client, which is asked for its process in each call.
#[pyclass(frozen, module = "redlatch")]
pub(crate) struct Register {
    client: Py<Client>,
    name: Vec<u8>,
}

fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    view!(
        py, Value,
        data: PyBytes::new(py, value.bytes()),
        version: Version(value.version()),
        written_at: moment(py, value.written_at())?,
        fence: value.fence().map(FencingToken::as_u64),
    )
}

/// What a register is set to.
fn bytes(new: Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let new: Bound<'_, PyBytes> = Given {
        name: "new",
        value: new,
    }
    .get("a value of bytes")?;
    Ok(new.as_bytes().to_vec())
}

impl Register {
    fn here(&self, py: Python<'_>) -> PyResult<redlatch::Register> {
        let client = self.client.get().here(py)?;
        client
            .register(&self.name)
            .map_err(|error| raise(py, &error.into()))
    }
}

#[pymethods]
impl Register {
    /// The value, or ``None`` if it has none.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let register = self.here(py)?;
        let read = detached(py, || register.read())?;
        read.map(|read| value(py, &read)).transpose()
    }

    /// Sets it, whatever its value is.
    fn set(&self, py: Python<'_>, new: Bound<'_, PyAny>) -> PyResult<()> {
        let register = self.here(py)?;
        let new = bytes(new)?;
        detached(py, || register.change(|_| Some(new.clone()))).map(drop)
    }

    /// Sets it if its version is still ``seen``; ``None``: if it has no value. ``False``: it has
    /// another version, or none.
    #[pyo3(signature = (seen, new))]
    fn compare_and_set(
        &self,
        py: Python<'_>,
        seen: Option<Bound<'_, PyAny>>,
        new: Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let register = self.here(py)?;
        let seen: Option<PyRef<'_, Version>> = seen
            .map(|value| {
                Given {
                    name: "seen",
                    value,
                }
                .get("None, or the version of a value,")
            })
            .transpose()?;
        let seen = seen.map(|version| version.0);
        let new = bytes(new)?;
        detached(py, || register.compare_and_set(seen, &new)).map(|done| done.is_ok())
    }

    /// Sets it unless somebody with a later fencing token did: then ``False``.
    fn write_fenced(
        &self,
        py: Python<'_>,
        token: Bound<'_, PyAny>,
        new: Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let register = self.here(py)?;
        let token: u64 = Given {
            name: "token",
            value: token,
        }
        .number("a fencing token, an int,")?;
        let new = bytes(new)?;
        let token = FencingToken::try_from(token).map_err(|error| raise(py, &error.into()))?;
        detached(py, || register.write_fenced(token, &new)).map(|done| done.is_ok())
    }

    /// Removes the value.
    fn delete(&self, py: Python<'_>) -> PyResult<()> {
        let register = self.here(py)?;
        detached(py, || register.delete()).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<redlatch.Register '{}'>", self.name.escape_ascii())
    }
}

#[pyfunction]
pub(crate) fn register(client: Py<Client>, name: Name) -> Register {
    Register {
        client,
        name: name.0,
    }
}

#[pyfunction]
pub(crate) fn form_registers(client: &Client, py: Python<'_>, in_memory: bool) -> PyResult<()> {
    let client = client.here(py)?;
    detached(py, || client.registers().form(in_memory))
}
