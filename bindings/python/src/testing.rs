//! Nodes inside the process, for the tests of programs.

use pyo3::prelude::*;
use redlatch::embedded;
use std::io;

#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Nodes(embedded::Nodes);

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

    fn stop(&self, py: Python<'_>, node: usize) {
        py.detach(|| self.0.stop(node));
    }

    fn restart(&self, py: Python<'_>, node: usize) -> io::Result<()> {
        py.detach(|| self.0.restart(node))
    }

    fn pause(&self, py: Python<'_>, node: usize) {
        py.detach(|| self.0.pause(node));
    }

    fn resume(&self, py: Python<'_>, node: usize) {
        py.detach(|| self.0.resume(node));
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
