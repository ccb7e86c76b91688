//! `redlatch run --once-per`: a command that runs once in each period, on one of many machines.

use super::textfile::Textfile;
use super::{Job, Started};
use crate::acquire::refusal::{self, named};
use crate::acquire::{ended_by, owner, request};
use crate::exit::{self, Failure};
use crate::log::Log;
use crate::{duration, output};
use redlatch::error::TtlError;
use redlatch::{Error, OncePerError, OncePerRun};
use std::time::{Duration, Instant};

/// The command ran under the lock, and was not a success; or it did not run.
enum End {
    Code(u8),
    Stopped,
    Failed(Failure),
    NotRun(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::NotRun(error)
    }
}

pub(super) fn run(
    job: &Job<'_>,
    period: Duration,
    log: &Log,
    metrics: &mut Textfile,
) -> Result<u8, Failure> {
    let arguments = &job.arguments.acquire;
    let start = Instant::now();
    let mut once = request(job.client, arguments, &owner(arguments)).once_per(period);
    if job.arguments.retry_failed {
        once = once.retry_failed();
    }
    if job.arguments.exact {
        once = once.exact();
    }
    let mut begun: Option<Started> = None;
    let ran = once.clone().run(|guard| {
        log.held(guard, start.elapsed());
        metrics.held();
        let ended = job
            .signals
            .first_that_ends()
            .map(|signal| ended_by(Some(signal)));
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
                // Nothing has run. Nobody else claims a run: the lock is held.
                let _ = once.forget();
                Err(End::Failed(failure))
            }
        }
    });
    let was_stopped = matches!(ran, Err(End::Stopped));
    let is_lost = was_stopped || matches!(ran, Err(End::NotRun(Error::Lost(_))));
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
        Err(End::NotRun(error)) => not_run(job, period, error),
    }
}

fn not_run(job: &Job<'_>, period: Duration, error: Error) -> Result<u8, Failure> {
    Err(match error {
        Error::Cancelled => ended_by(job.signals.first_that_ends()),
        Error::OncePer(OncePerError::NotRecorded(_)) => {
            output::note(&error.to_string());
            return Ok(exit::SUCCESS);
        }
        Error::Ttl(TtlError::HoldTooLong { longest, .. }) => {
            let [period, longest] = [period, longest].map(duration::show);
            Failure::usage(&format!(
                "--once-per {period} is longer than a lock can be held on ZooKeeper: {longest}"
            ))
        }
        error => refusal::failed(job.client, &job.arguments.acquire, error),
    })
}
