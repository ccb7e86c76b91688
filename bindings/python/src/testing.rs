//! Nodes inside the process, for the tests of programs.

use crate::arguments::Given;
use crate::calls::undisturbed;
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use redlatch::embedded;
use std::{io, mem, process};

/// Servers in threads of the process that started them. A forked child has none of these threads,
/// and leaves the servers to its parent: an end would wait for them.
struct Started<T> {
    process: u32,
    /// Until this is dropped.
    servers: Option<T>,
}

impl<T> Started<T> {
    fn new(servers: T) -> Self {
        Self {
            process: process::id(),
            servers: Some(servers),
        }
    }

    fn get(&self) -> &T {
        self.servers.as_ref().expect("it was not dropped")
    }

    fn is_forked(&self) -> bool {
        self.process != process::id()
    }
}

impl<T> Drop for Started<T> {
    fn drop(&mut self) {
        if self.is_forked() {
            mem::forget(self.servers.take());
        }
    }
}

/// Nodes that answer as redis-servers do, inside the process: until the end of a ``with`` block of
/// them, or until nothing refers to them. Their numbers begin with 0.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Nodes(Started<embedded::Nodes>);

impl Nodes {
    /// Calls `call` with a node, if there is one of this number.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        node: i64,
        call: impl FnOnce(&embedded::Nodes, usize) -> T + Send,
    ) -> PyResult<T> {
        if self.0.is_forked() {
            let text = "nodes are stopped and paused in the process that started them";
            return Err(PyRuntimeError::new_err(text));
        }
        let nodes = self.0.get();
        let count = nodes.len();
        let Some(number) = usize::try_from(node).ok().filter(|number| *number < count) else {
            let text = format!("no node {node}: there are {count}, from 0");
            return Err(PyIndexError::new_err(text));
        };
        undisturbed(py, || call(nodes, number))
    }
}

#[pymethods]
impl Nodes {
    #[new]
    fn new(count: Bound<'_, PyAny>) -> PyResult<Self> {
        let count: usize = Given {
            name: "count",
            value: count,
        }
        .number("a number of nodes")?;
        Ok(Self(Started::new(embedded::Nodes::start(count)?)))
    }

    /// Their URLs, for a client.
    #[getter]
    fn urls(&self) -> Vec<String> {
        self.0.get().urls()
    }

    /// Ends a node: connections to it are refused.
    fn stop(&self, py: Python<'_>, node: i64) -> PyResult<()> {
        self.with(py, node, embedded::Nodes::stop)
    }

    /// Starts a node again, without its keys.
    fn restart(&self, py: Python<'_>, node: i64) -> PyResult<()> {
        Ok(self.with(py, node, embedded::Nodes::restart)??)
    }

    /// Has a node not answer any more, as if its machine stood still.
    fn pause(&self, py: Python<'_>, node: i64) -> PyResult<()> {
        self.with(py, node, embedded::Nodes::pause)
    }

    /// Has a node that was paused go on.
    fn resume(&self, py: Python<'_>, node: i64) -> PyResult<()> {
        self.with(py, node, embedded::Nodes::resume)
    }

    fn __len__(&self) -> usize {
        self.0.get().len()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Ends them all.
    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        if self.0.is_forked() {
            return Ok(());
        }
        let nodes = self.0.get();
        undisturbed(py, || (0..nodes.len()).for_each(|node| nodes.stop(node)))
    }
}

/// An ensemble of ZooKeeper inside the process.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Ensemble(Started<embedded::Ensemble>);

#[pymethods]
impl Ensemble {
    #[new]
    fn new() -> io::Result<Self> {
        embedded::Ensemble::start().map(Started::new).map(Self)
    }

    /// Its URL, for a client.
    #[getter]
    fn url(&self) -> String {
        self.0.get().url()
    }
}
