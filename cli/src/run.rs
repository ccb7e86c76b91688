//! `redlatch run`: a command under a lock.

pub(crate) mod arguments;
mod child;
mod descriptor;
mod exec;
mod processes;
pub(crate) mod signals;
mod supervisor;

pub(crate) use child::is_in_foreground;
pub(crate) use exec::exec_if_asked;

use super::acquire::{self, refusal};
use super::arguments::NodeArguments;
use super::exit::{self, Failure};
use super::{ensemble, settings};
use arguments::RunArguments;
use child::Child;
use redlatch::LockGuard;
use signals::Signals;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use supervisor::Supervisor;

pub(crate) fn run(nodes: &NodeArguments, arguments: &RunArguments) -> Result<u8, Failure> {
    // Before the lock is acquired, so that a misspelt command takes no turn of others.
    child::check(&arguments.command[0])?;
    let (client, is_ensemble) = settings::client_of(nodes)?;
    let signals = Signals::catch(client.cancel_token())?;
    let guard = acquire::acquire(&client, &signals, &arguments.acquire, arguments.fenced)?;
    let variables = variables(arguments, &guard);
    let start = || Child::spawn(&arguments.command, &variables, !arguments.close);
    let child = match signals.start(start) {
        Ok(child) => child,
        Err(failure) => {
            acquire::give_up(&client, &arguments.acquire, guard);
            return Err(failure);
        }
    };
    let least = least_validity(arguments, is_ensemble.then(|| guard.remaining()));
    let supervisor = Supervisor::new(&guard, child, arguments.grace, least);
    let (code, is_lost) = supervisor.run(&signals)?;
    if !acquire::release(guard) || is_lost {
        let text = supervisor::lost_text(is_lost);
        return Err(refusal::named(&arguments.acquire, exit::LOST, text));
    }
    Ok(code)
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
fn variables(arguments: &RunArguments, guard: &LockGuard) -> [(&'static str, Option<Vec<u8>>); 3] {
    let number = |number: u64| number.to_string().into_bytes();
    [
        ("REDLATCH_LOCK", Some(OsStr::as_bytes(&arguments.acquire.name).to_vec())),
        ("REDLATCH_FENCING_TOKEN", guard.fencing_token().map(|token| number(token.as_u64()))),
        ("REDLATCH_PERMIT", guard.slot().map(|permit| number(permit.into()))),
    ]
}
