//! Jobs once in each period, and elections.

use crate::arguments::{Name, Seconds, Timeout};
use crate::calls::{CancelToken, detached, undisturbed};
use crate::client::Client;
use crate::errors::{no_thread, raise};
use crate::lock::Lock;
use crate::views::{holder, moment, view};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use redlatch::{Election, Error, OncePerRun};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The job is to be run, or the call has ended.
enum Step {
    Run,
    Done(Result<OncePerRun<()>, JobError>),
}

/// A call of a job that may run. The library's call is in a thread of its own, and the job is run
/// by Python between [`next`](Self::next) and [`tell`](Self::tell): it may take long, raise, and
/// switch greenlets.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct OncePerCall {
    steps: Mutex<Receiver<Step>>,
    /// Whether the job has succeeded. Dropped with this: it has not.
    verdict: SyncSender<bool>,
}

enum JobError {
    Raised,
    Lock(Error),
}

impl From<Error> for JobError {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

#[pymethods]
impl OncePerCall {
    #[new]
    fn new(
        py: Python<'_>,
        client: &Client,
        name: Name,
        period: Seconds,
        tolerance: Option<Seconds>,
        retry_failed: bool,
        exact: bool,
    ) -> PyResult<Self> {
        let client = client.here(py)?;
        let (step, steps) = sync_channel(2);
        let (verdict, verdicts) = sync_channel(1);
        let thread = thread::Builder::new().name("redlatch-once".to_owned());
        let started = thread.spawn(move || {
            let mut once = client.once_per(&name, period.0);
            if let Some(tolerance) = tolerance {
                once = once.tolerance(tolerance.0);
            }
            if retry_failed {
                once = once.retry_failed();
            }
            if exact {
                once = once.exact();
            }
            let run = once.run(|_lock| {
                let _ = step.send(Step::Run);
                verdicts
                    .recv()
                    .is_ok_and(|succeeded| succeeded)
                    .then_some(())
                    .ok_or(JobError::Raised)
            });
            let _ = step.send(Step::Done(run));
        });
        started.map_err(|error| no_thread(py, &error))?;
        Ok(Self {
            steps: Mutex::new(steps),
            verdict,
        })
    }

    /// ``None``: now the job is to be run.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let step = undisturbed(py, || {
            self.steps
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv()
                .ok()
        })?;
        let view = match step {
            Some(Step::Run) => return Ok(None),
            Some(Step::Done(Ok(OncePerRun::NotDue { left, next, .. }))) => {
                view!(py, OncePerRun, ran: false, left: left.as_secs_f64(), next: moment(py, next)?)
            }
            Some(Step::Done(Ok(OncePerRun::HeldByOther))) => {
                view!(py, OncePerRun, ran: false, is_held_by_other: true)
            }
            Some(Step::Done(Err(JobError::Lock(error)))) => return Err(raise(py, &error)),
            _ => view!(py, OncePerRun, ran: true),
        };
        view.map(Some)
    }

    /// Whether the job has succeeded.
    fn tell(&self, succeeded: bool) {
        let _ = self.verdict.try_send(succeeded);
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
    wait: Timeout,
    cancelled_by: Option<&CancelToken>,
) -> PyResult<Option<Lock>> {
    let id = client.id(py);
    let client = client.here(py)?;
    let mut election = client.election(&name).ttl(ttl.0);
    election = candidate.into_iter().fold(election, Election::name);
    if let Some(token) = cancelled_by {
        election = election.cancelled_by(&token.0);
    }
    let elected = detached(py, || match wait.0 {
        None => election.campaign().map(Some),
        Some(wait) => election.campaign_for(wait),
    })?;
    Ok(elected.map(|leadership| Lock::new(leadership.into_lock(), id, false)))
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
