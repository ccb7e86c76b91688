//! `redlatch run`: a command under a lock.

pub(crate) mod arguments;
mod child;
mod descriptor;
mod exec;
mod health_file;
mod on_lost;
mod once_per;
mod processes;
pub(crate) mod signals;
mod state_file;
mod supervisor;
mod textfile;

pub(crate) use child::is_in_foreground;
pub(crate) use exec::exec_if_asked;
pub(crate) use processes::is_below_another;

use super::acquire::{self, refusal};
use super::arguments::NodeArguments;
use super::exit::Failure;
use super::log::Log;
use super::service::{self, Service};
use super::{ensemble, settings};
use arguments::RunArguments;
use child::Child;
use health_file::HealthFile;
use on_lost::OnLost;
use redlatch::{LockClient, LockGuard};
use signals::Signals;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;
use supervisor::{Supervisor, lost_text};
use textfile::Textfile;

pub(crate) fn run(nodes: &NodeArguments, arguments: RunArguments) -> Result<u8, Failure> {
    let mut metrics = Textfile::new(arguments.metrics_textfile.as_deref(), &arguments.acquire)?;
    let ended = run_under_lock(nodes, arguments, &mut metrics);
    metrics.ended(
        ended
            .as_ref()
            .map_or_else(|failure| failure.code, |code| *code),
    );
    ended
}

fn run_under_lock(
    nodes: &NodeArguments,
    mut arguments: RunArguments,
    metrics: &mut Textfile,
) -> Result<u8, Failure> {
    let words = arguments.words();
    // Before the lock is acquired, so that a misspelt command takes no turn of others.
    child::check(&words[0])?;
    acquire::refuse_own(&arguments.acquire)?;
    health_file::check(arguments.health_file.as_deref())?;
    let log = Log::start(&arguments.acquire);
    let (client, is_ensemble) = settings::lock_client(nodes, &mut arguments.acquire, &log)?;
    let signals = Signals::catch(client.cancel_token())?;
    let arguments = &arguments;
    let service = Service::new(arguments.notify, &arguments.acquire);
    let job = Job {
        client: &client,
        is_ensemble,
        arguments,
        words: &words,
        signals: &signals,
        service: &service,
    };
    service.waiting();
    if let Some(period) = arguments.once_per {
        return once_per::run(&job, period, &log, metrics);
    }
    let guard = acquire::acquire(
        &client,
        &signals,
        &arguments.acquire,
        arguments.fenced,
        &log,
    )?;
    metrics.held();
    let (started, code, was_stopped) = match job.start_and_supervise(&guard) {
        Ok(ended) => ended,
        Err(failure) => {
            acquire::give_up(guard);
            return Err(failure);
        }
    };
    if was_stopped {
        log.lost(lost_text(true));
    }
    let is_lost = !acquire::release(&client, guard, is_ensemble) || was_stopped;
    metrics.released(is_lost);
    if is_lost {
        Err(job.lost(started.on_lost, was_stopped, &log))
    } else {
        Ok(code)
    }
}

/// What is to run under the lock.
struct Job<'a> {
    client: &'a LockClient,
    is_ensemble: bool,
    arguments: &'a RunArguments,
    words: &'a [OsString],
    signals: &'a Signals,
    service: &'a Service,
}

/// A command that runs, and what is told of a loss.
struct Started {
    child: Option<Child>,
    on_lost: OnLost,
}

impl Job<'_> {
    fn start(&self, guard: &LockGuard) -> Result<Started, Failure> {
        let variables = variables(self.arguments, guard);
        let on_lost = OnLost::new(self.arguments.on_lost.as_deref(), &variables);
        let spawn = || Child::spawn(self.words, &variables, !self.arguments.close);
        Ok(Started {
            child: Some(self.signals.start(spawn)?),
            on_lost,
        })
    }

    /// A failure if the command did not start.
    fn start_and_supervise(&self, guard: &LockGuard) -> Result<(Started, u8, bool), Failure> {
        let mut started = self.start(guard)?;
        self.service.held();
        let (code, was_stopped) = self.supervise(guard, &mut started)?;
        self.service.stopping();
        Ok((started, code, was_stopped))
    }

    /// Runs the command to its end. Returns its exit code, and whether it was stopped because the
    /// lock was lost. A failure if it did not start.
    fn supervise(&self, guard: &LockGuard, started: &mut Started) -> Result<(u8, bool), Failure> {
        let Self {
            arguments,
            is_ensemble,
            signals,
            ..
        } = self;
        let least = least_validity(arguments, *is_ensemble, guard.remaining());
        let child = started.child.take().expect("it runs once");
        let health = HealthFile::new(arguments.health_file.as_deref());
        Supervisor::new(
            guard,
            child,
            &mut started.on_lost,
            health,
            arguments.grace,
            least,
        )
        .run(signals)
    }

    /// Tells of the loss.
    fn lost(&self, mut on_lost: OnLost, was_stopped: bool, log: &Log) -> Failure {
        let text = lost_text(was_stopped);
        log.lost(text);
        // Not started yet if the loss was noticed only now.
        on_lost.start();
        on_lost.finish();
        refusal::lost(&self.arguments.acquire, text)
    }
}

/// With how much validity left the command is stopped, so that it can end before the lock does.
/// Less is never left while all is well: on Redis nodes, the lock is extended in each third of its
/// ttl. On an ensemble, the session is what counts. `granted` was left at first.
fn least_validity(arguments: &RunArguments, is_ensemble: bool, granted: Duration) -> Duration {
    let wanted = arguments.grace.max(4 * supervisor::KILL_AHEAD);
    let least = if is_ensemble {
        ensemble::least_validity(granted) / 2
    } else {
        granted / 3
    };
    wanted.min(least)
}

/// The variables of the command. One without a value is removed: it may be of an outer
/// `redlatch run`.
fn variables(arguments: &RunArguments, guard: &LockGuard) -> Vec<(&'static str, Option<OsString>)> {
    let number = |number: u64| OsString::from(number.to_string());
    let mut variables = vec![
        (acquire::VARIABLE, Some(arguments.acquire.name.clone())),
        (
            "REDLATCH_FENCING_TOKEN",
            guard.fencing_token().map(|token| number(token.as_u64())),
        ),
        (
            "REDLATCH_PERMIT",
            guard.slot().map(|permit| number(permit.into())),
        ),
    ];
    if arguments.notify {
        // This program tells systemd, and one that does as well would say more than is true.
        variables.push((service::VARIABLE, None));
    }
    variables
}

fn set_variables(command: &mut Command, variables: &[(&str, Option<OsString>)]) {
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}
