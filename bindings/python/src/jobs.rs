//! Jobs once in each period, and elections.

use crate::arguments::{Name, Seconds};
use crate::calls::{CancelToken, detached, undisturbed};
use crate::client::Client;
use crate::errors::raise;
use crate::lock::Lock;
use crate::views::{holder, view};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use redlatch::{Election, Error, OncePerRun};

/// The error of a job, which passes through the library.
enum JobError {
    Job(PyErr),
    Lock(Error),
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn once_per<'py>(
    client: &Client,
    py: Python<'py>,
    name: Name,
    period: Seconds,
    job: Py<PyAny>,
    tolerance: Option<Seconds>,
    retry_failed: bool,
    exact: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let client = client.here(py)?;
    let mut once = client.once_per(&name, period.0);
    once = tolerance.into_iter().fold(once, |once, time| once.tolerance(time.0));
    once = if retry_failed { once.retry_failed() } else { once };
    once = if exact { once.exact() } else { once };
    let run = undisturbed(py, || {
        once.run(|_lock| Python::attach(|py| job.call0(py)).map_err(JobError::Job))
    });
    match run {
        Ok(OncePerRun::Ran(value)) => view!(py, OncePerRun, ran: true, value: value),
        Ok(OncePerRun::NotDue { left, next, .. }) => {
            view!(py, OncePerRun, ran: false, left: left.as_secs_f64(), next: next)
        }
        Ok(_) => view!(py, OncePerRun, ran: false, is_held_by_other: true),
        Err(JobError::Job(error)) => Err(error),
        Err(JobError::Lock(error)) => Err(raise(py, &error)),
    }
}

#[pyfunction]
pub(crate) fn forget(client: &Client, py: Python<'_>, name: Name, exact: bool) -> PyResult<()> {
    let client = client.here(py)?;
    let period = std::time::Duration::from_secs(1);
    let once = client.once_per(&name, period);
    detached(py, || if exact { once.exact() } else { once }.forget())
}

#[pyfunction]
pub(crate) fn campaign(
    client: &Client,
    py: Python<'_>,
    name: Name,
    candidate: Option<Name>,
    ttl: Seconds,
    wait: Option<Seconds>,
    cancelled_by: Option<&CancelToken>,
) -> PyResult<Option<Lock>> {
    let client = client.here(py)?;
    let mut election = client.election(&name).ttl(ttl.0);
    election = candidate.into_iter().fold(election, Election::name);
    if let Some(token) = cancelled_by {
        election = election.cancelled_by(&token.0);
    }
    let elected = detached(py, || match wait {
        None => election.campaign().map(Some),
        Some(Seconds(wait)) => election.campaign_for(wait),
    })?;
    Ok(elected.map(|leadership| Lock::new(leadership.into_lock())))
}

#[pyfunction]
pub(crate) fn leader<'py>(
    client: &Client,
    py: Python<'py>,
    name: Name,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let client = client.here(py)?;
    let leader = detached(py, || client.election(&name).leader())?;
    leader.map(|leader| holder(py, &leader)).transpose()
}
