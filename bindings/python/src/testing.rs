//! Nodes inside the process, for the tests of programs.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use redlatch::embedded;
use std::io;

#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Nodes(embedded::Nodes);

impl Nodes {
    /// Calls `call` with a node, if there is one of this number.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        node: usize,
        call: impl FnOnce(&embedded::Nodes, usize) -> T + Send,
    ) -> PyResult<T> {
        let count = self.0.len();
        if node >= count {
            let text = format!("no node {node}: there are {count}, from 0");
            return Err(PyIndexError::new_err(text));
        }
        Ok(py.detach(|| call(&self.0, node)))
    }
}

#[pymethods]
impl Nodes {
    #[new]
    fn new(count: usize) -> io::Result<Self> {
        embedded::Nodes::start(count).map(Self)
    }

    #[getter]
    fn urls(&self) -> Vec<String> {
        self.0.urls()
    }

    fn stop(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        self.with(py, node, embedded::Nodes::stop)
    }

    fn restart(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        Ok(self.with(py, node, embedded::Nodes::restart)??)
    }

    fn pause(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        self.with(py, node, embedded::Nodes::pause)
    }

    fn resume(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        self.with(py, node, embedded::Nodes::resume)
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// An ensemble of ZooKeeper inside the process.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Ensemble(embedded::Ensemble);

#[pymethods]
impl Ensemble {
    #[new]
    fn new() -> io::Result<Self> {
        embedded::Ensemble::start().map(Self)
    }

    #[getter]
    fn url(&self) -> String {
        self.0.url()
    }
}
