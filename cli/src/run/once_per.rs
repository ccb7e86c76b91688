//! `redlatch run --once-per`: a command that runs once in each period, on one of many machines.

use super::textfile::Textfile;
use super::{Job, Started};
use crate::acquire::refusal::{self, named};
use crate::acquire::{ended_by, owner, request};
use crate::exit::{self, Failure};
use crate::log::Log;
use crate::{duration, output};
use redlatch::{Error, OncePerError, OncePerRun};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

/// The command ran under the lock, and was no success; or it did not run.
enum End {
    Code(u8),
    Stopped,
    Failed(Failure),
    NotRun(OncePerError<()>),
}

impl From<OncePerError<()>> for End {
    fn from(error: OncePerError<()>) -> Self {
        Self::NotRun(error)
    }
}

pub(super) fn run(
    job: &Job<'_>,
    period: Duration,
    log: &Log,
    metrics: &mut Textfile,
) -> Result<u8, Failure> {
    let (arguments, start) = (&job.arguments.acquire, Instant::now());
    let mut once = request(job.client, arguments, &owner(arguments)).once_per(period);
    if job.arguments.retry_failed {
        once = once.retry_failed();
    }
    if job.arguments.exact {
        once = once.exact();
    }
    let mut begun: Option<Started> = None;
    let ran = once.run(|guard| {
        log.held(guard, start.elapsed());
        metrics.held();
        let ended = job.signals.first_that_ends().map(|signal| ended_by(Some(signal)));
        match ended.map_or_else(|| job.start_and_supervise(guard), Err) {
            Ok((started, code, was_stopped)) => {
                begun = Some(started);
                match code {
                    _ if was_stopped => Err(End::Stopped),
                    exit::SUCCESS => Ok(()),
                    code => Err(End::Code(code)),
                }
            }
            Err(failure) => {
                forget(job);
                Err(End::Failed(failure))
            }
        }
    });
    let was_stopped = matches!(ran, Err(End::Stopped));
    let is_lost = was_stopped || matches!(ran, Err(End::NotRun(OncePerError::LostDuring { .. })));
    metrics.released(is_lost);
    if let (true, Some(started)) = (is_lost, begun) {
        return Err(job.lost(started.on_lost, was_stopped, log));
    }
    match ran {
        Ok(OncePerRun::Ran(())) => Ok(exit::SUCCESS),
        Ok(OncePerRun::NotDue { left, .. }) => match arguments.conflict_exit_code {
            Some(exit::SUCCESS) => Ok(exit::SUCCESS),
            code => {
                let text = format!("not due for another {}", duration::show(left));
                Err(named(&arguments.name, code.unwrap_or(exit::NOT_DUE), &text))
            }
        },
        Ok(_) => Err(refusal::contended(job.client, arguments)),
        Err(End::Code(code)) => Ok(code),
        Err(End::Failed(failure)) => Err(failure),
        Err(End::Stopped) => unreachable!("the command had begun"),
        Err(End::NotRun(error)) => not_run(job, error),
    }
}

/// Forgets the run, as nothing has run. Nobody else claims one: the lock is held.
fn forget(job: &Job<'_>) {
    let name = [&b"once_per:"[..], job.arguments.acquire.name.as_bytes()].concat();
    if job.arguments.exact {
        let _ = job.client.register(name).map(|register| register.delete());
    } else if let Ok(seen) = job.client.inspect(name) {
        let _ = job.client.force_release(&seen);
    }
}

fn not_run(job: &Job<'_>, error: OncePerError<()>) -> Result<u8, Failure> {
    let arguments = &job.arguments.acquire;
    Err(match error {
        OncePerError::NotAcquired(Error::Cancelled) => ended_by(job.signals.first_that_ends()),
        OncePerError::NotAcquired(error) => refusal::failed(job.client, arguments, error),
        OncePerError::NotRecorded { .. } | OncePerError::LockNotRecorded { .. } => {
            output::note(&error.to_string());
            return Ok(exit::SUCCESS);
        }
        OncePerError::Register(ref inner) => {
            Failure::new(Failure::from(inner.clone()).code, &error)
        }
        OncePerError::Clocks(_) => Failure::new(exit::NO_QUORUM, &error),
        OncePerError::Period { .. } => Failure::usage(&error),
        _ => Failure::new(exit::FAILED, &error),
    })
}
