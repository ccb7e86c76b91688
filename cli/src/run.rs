//! `redlatch run`: a command under a lock.

pub(crate) mod arguments;
mod child;
mod descriptor;
mod exec;
mod on_lost;
mod processes;
pub(crate) mod signals;
mod supervisor;
mod textfile;

pub(crate) use child::is_in_foreground;
pub(crate) use exec::exec_if_asked;

use super::acquire::{self, refusal};
use super::arguments::NodeArguments;
use super::exit::Failure;
use super::log::Log;
use super::{ensemble, settings};
use arguments::RunArguments;
use child::Child;
use on_lost::OnLost;
use redlatch::LockGuard;
use signals::Signals;
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;
use supervisor::Supervisor;
use textfile::Textfile;

pub(crate) fn run(nodes: &NodeArguments, arguments: &RunArguments) -> Result<u8, Failure> {
    let mut metrics = Textfile::new(arguments.metrics_textfile.as_deref(), &arguments.acquire);
    let ended = run_under_lock(nodes, arguments, &mut metrics);
    metrics.ended(ended.as_ref().map_or_else(|failure| failure.code, |code| *code));
    ended
}

fn run_under_lock(
    nodes: &NodeArguments,
    arguments: &RunArguments,
    metrics: &mut Textfile,
) -> Result<u8, Failure> {
    let words = arguments.words();
    // Before the lock is acquired, so that a misspelt command takes no turn of others.
    child::check(&words[0])?;
    let log = Log::start(&arguments.acquire);
    let (client, is_ensemble) = settings::logged_client(nodes, &log)?;
    let signals = Signals::catch(client.cancel_token())?;
    let guard = acquire::acquire(&client, &signals, &arguments.acquire, arguments.fenced, &log)?;
    metrics.held();
    let variables = variables(arguments, &guard);
    let mut on_lost = OnLost::new(arguments.on_lost.as_deref(), &variables);
    let child = match signals.start(|| Child::spawn(&words, &variables, !arguments.close)) {
        Ok(child) => child,
        Err(failure) => {
            acquire::give_up(&client, &arguments.acquire, guard);
            return Err(failure);
        }
    };
    let least = least_validity(arguments, is_ensemble.then(|| guard.remaining()));
    let supervisor = Supervisor::new(&guard, child, &mut on_lost, arguments.grace, least);
    let (code, was_stopped) = supervisor.run(&signals)?;
    let text = supervisor::lost_text(was_stopped);
    if was_stopped {
        log.lost(text);
    }
    let is_lost = !acquire::release(guard) || was_stopped;
    metrics.released(is_lost);
    if !is_lost {
        return Ok(code);
    }
    log.lost(text);
    // Not started yet if the loss was noticed only now.
    on_lost.start();
    on_lost.finish();
    Err(refusal::lost(&arguments.acquire, text))
}

/// With how much validity left the command is stopped, so that it can end before the lock does.
/// Less is never left while all is well: on Redis nodes, the lock is extended in each third of its
/// ttl. On an ensemble, where so much was left at first, the session is what counts.
fn least_validity(arguments: &RunArguments, of_session: Option<Duration>) -> Duration {
    let wanted = arguments.grace.max(4 * supervisor::KILL_AHEAD);
    match of_session {
        None => wanted.min(arguments.acquire.ttl / 3),
        Some(granted) => wanted.min(ensemble::least_validity(granted) / 2),
    }
}

/// The variables of the command. One without a value is removed: it may be of an outer
/// `redlatch run`.
fn variables(arguments: &RunArguments, guard: &LockGuard) -> [(&'static str, Option<OsString>); 3] {
    let number = |number: u64| OsString::from(number.to_string());
    [
        ("REDLATCH_LOCK", Some(arguments.acquire.name.clone())),
        ("REDLATCH_FENCING_TOKEN", guard.fencing_token().map(|token| number(token.as_u64()))),
        ("REDLATCH_PERMIT", guard.slot().map(|permit| number(permit.into()))),
    ]
}

fn set_variables(command: &mut Command, variables: &[(&str, Option<OsString>)]) {
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}
