//! Nodes inside the process, for the tests of programs.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use redlatch::embedded;
use std::io;

#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Nodes(embedded::Nodes);

impl Nodes {
    fn index(&self, node: usize) -> PyResult<usize> {
        let count = self.0.len();
        let text = || format!("no node {node}: there are {count}, from 0");
        if node < count { Ok(node) } else { Err(PyIndexError::new_err(text())) }
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
        let node = self.index(node)?;
        py.detach(|| self.0.stop(node));
        Ok(())
    }

    fn restart(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        let node = self.index(node)?;
        Ok(py.detach(|| self.0.restart(node))?)
    }

    fn pause(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        let node = self.index(node)?;
        py.detach(|| self.0.pause(node));
        Ok(())
    }

    fn resume(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        let node = self.index(node)?;
        py.detach(|| self.0.resume(node));
        Ok(())
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
