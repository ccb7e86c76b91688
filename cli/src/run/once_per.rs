//! `redlatch run --once-per`: a command that runs once in each period, on one of many machines.

use super::refusal::{self, named};
use super::signals::Signals;
use super::{default_owner, ended_by, execute, request};
use crate::arguments::RunArguments;
use crate::exit::{self, Failure};
use crate::{duration, output};
use redlatch::{LockClient, LockError, OncePerError, OncePerRun};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The command ran under the lock, and was no success; or it did not run.
enum End {
    Code(u8),
    Failed(Failure),
    NotRun(OncePerError<()>),
}

impl From<OncePerError<()>> for End {
    fn from(error: OncePerError<()>) -> Self {
        Self::NotRun(error)
    }
}

pub(super) fn run(
    client: &LockClient,
    is_ensemble: bool,
    arguments: &RunArguments,
    period: Duration,
    signals: &Signals,
) -> Result<u8, Failure> {
    let owner = arguments.owner.as_ref().map_or_else(default_owner, |it| it.as_bytes().to_vec());
    let mut once = request(client, arguments, &owner).once_per(period);
    if arguments.retry_failed {
        once = once.retry_failed();
    }
    let ran = once.run(|guard| {
        if let Some(signal) = signals.first_that_ends() {
            return Err(End::Failed(ended_by(Some(signal))));
        }
        match execute(guard, arguments, signals, is_ensemble).map_err(End::Failed)? {
            (_, true) => Err(End::Failed(named(arguments, exit::LOST, super::lost_text(true)))),
            (exit::SUCCESS, _) => Ok(()),
            (code, _) => Err(End::Code(code)),
        }
    });
    match ran {
        Ok(OncePerRun::Ran(())) => Ok(exit::SUCCESS),
        Ok(OncePerRun::NotDue { left, .. }) => match arguments.conflict_exit_code {
            Some(exit::SUCCESS) => Ok(exit::SUCCESS),
            code => {
                let text = format!("not due for another {}", duration::show(left));
                Err(named(arguments, code.unwrap_or(exit::NOT_DUE), &text))
            }
        },
        Ok(_) => refusal::contended(client, arguments),
        Err(End::Code(code)) => Ok(code),
        Err(End::Failed(failure)) => Err(failure),
        Err(End::NotRun(error)) => not_run(client, arguments, signals, error),
    }
}

fn not_run(
    client: &LockClient,
    arguments: &RunArguments,
    signals: &Signals,
    error: OncePerError<()>,
) -> Result<u8, Failure> {
    Err(match error {
        OncePerError::NotAcquired(LockError::Cancelled) => ended_by(signals.first_that_ends()),
        OncePerError::NotAcquired(error) => refusal::failed(client, arguments, error),
        OncePerError::LostDuring { .. } => named(arguments, exit::LOST, super::lost_text(false)),
        OncePerError::NotRecorded { .. } => {
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
