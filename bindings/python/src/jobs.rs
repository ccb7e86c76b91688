//! Jobs once in each period, and elections.

use crate::arguments::{Name, Seconds, Timeout};
use crate::calls::{detached, undisturbed};
use crate::client::Client;
use crate::errors::{no_thread, raise};
use crate::lock::{Lock, outcome};
use crate::started::StartedCall;
use crate::views::{holder, moment, view};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use redlatch::{CancelToken, Election, Error, Leadership, LockClient, LockGuard, OncePerRun};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
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
    steps: Arc<Mutex<Receiver<Step>>>,
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
            steps: Arc::new(Mutex::new(steps)),
            verdict,
        })
    }

    /// ``None``: now the job is to be run.
    fn next(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let step = undisturbed(py, || next_step(&self.steps))?;
        returned(py, step)
    }

    /// The same, as a call that goes on.
    fn start_next(&self, py: Python<'_>) -> PyResult<StartedCall> {
        let steps = Arc::clone(&self.steps);
        StartedCall::in_thread(py, move |_| {
            let step = next_step(&steps);
            Box::new(move |py| returned(py, step))
        })
    }

    /// Whether the job has succeeded.
    fn tell(&self, succeeded: bool) {
        let _ = self.verdict.try_send(succeeded);
    }
}

/// ``None``: the call has panicked.
fn next_step(steps: &Mutex<Receiver<Step>>) -> Option<Step> {
    let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
    steps.recv().ok()
}

fn returned(py: Python<'_>, step: Option<Step>) -> PyResult<Py<PyAny>> {
    let view = match step {
        Some(Step::Run) => return Ok(py.None()),
        Some(Step::Done(Ok(OncePerRun::NotDue { left, next, .. }))) => {
            view!(py, OncePerRun, ran: false, left: left.as_secs_f64(), next: moment(py, next)?)
        }
        Some(Step::Done(Ok(OncePerRun::HeldByOther))) => {
            view!(py, OncePerRun, ran: false, is_held_by_other: true)
        }
        Some(Step::Done(Err(JobError::Lock(error)))) => return Err(raise(py, &error)),
        _ => view!(py, OncePerRun, ran: true),
    };
    view.map(Bound::unbind)
}

#[pyfunction]
pub(crate) fn forget(client: &Client, py: Python<'_>, name: Name, exact: bool) -> PyResult<()> {
    let client = client.here(py)?;
    let period = std::time::Duration::from_secs(1);
    let once = client.once_per(&name, period);
    detached(py, || if exact { once.exact() } else { once }.forget())
}

/// A call of a candidate for a term.
#[pyclass(frozen, module = "redlatch._native")]
pub(crate) struct Candidacy(Arc<Wish>);

struct Wish {
    client_id: u64,
    client: LockClient,
    name: Name,
    candidate: Option<Name>,
    ttl: Seconds,
    wait: Timeout,
}

impl Wish {
    fn campaign(&self, cancelled_by: Option<&CancelToken>) -> Result<Option<LockGuard>, Error> {
        let mut election = self.client.election(&self.name).ttl(self.ttl.0);
        election = self.candidate.iter().fold(election, Election::name);
        if let Some(token) = cancelled_by {
            election = election.cancelled_by(token);
        }
        let elected = match self.wait.0 {
            None => election.campaign().map(Some),
            Some(wait) => election.campaign_for(wait),
        };
        elected.map(|leadership| leadership.map(Leadership::into_lock))
    }
}

#[pymethods]
impl Candidacy {
    #[new]
    fn new(
        py: Python<'_>,
        client: &Client,
        name: Name,
        candidate: Option<Name>,
        ttl: Seconds,
        wait: Timeout,
    ) -> PyResult<Self> {
        Ok(Self(Arc::new(Wish {
            client_id: client.id(py),
            client: client.here(py)?,
            name,
            candidate,
            ttl,
            wait,
        })))
    }

    /// ``None``: another one leads.
    fn campaign(&self, py: Python<'_>) -> PyResult<Option<Lock>> {
        let elected = detached(py, || self.0.campaign(None))?;
        Ok(elected.map(|guard| Lock::new(guard, self.0.client_id, false)))
    }

    /// The same, as a call that goes on.
    fn start(&self, py: Python<'_>) -> PyResult<StartedCall> {
        let wish = Arc::clone(&self.0);
        StartedCall::in_thread(py, move |token| {
            outcome(wish.campaign(Some(token)), wish.client_id, false)
        })
    }
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
