//! `redlatch run`: a command under a lock.

mod child;
mod descriptor;
mod exec;
mod once_per;
mod processes;
mod refusal;
mod signals;
mod supervisor;
mod waiting_line;

pub(crate) use exec::exec_if_asked;

use super::arguments::{NodeArguments, RunArguments};
use super::exit::{self, Failure};
use super::{ensemble, output, settings};
use child::Child;
use redlatch::{LockClient, LockError, LockGuard, LockRequest, ReleaseError};
use signals::{CaughtSignal, Signals};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};
use supervisor::{Supervisor, lost_text};
use waiting_line::WaitingLine;

/// A command may run for as long as it takes. The library ends a lock that is kept alive after a
/// day, because the thread that holds it may hang; here the end of the command ends the lock.
const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

pub(crate) fn run(nodes: &NodeArguments, arguments: &RunArguments) -> Result<u8, Failure> {
    // Before the lock is acquired, so that a misspelt command takes no turn of others.
    child::check(&arguments.command[0])?;
    let (client, is_ensemble) = settings::client_of(nodes)?;
    let signals = Signals::catch(client.cancel_token())?;
    if let Some(period) = arguments.once_per {
        return once_per::run(&client, is_ensemble, arguments, period, &signals);
    }
    let guard = match acquire(&client, arguments) {
        Ok(Some(guard)) => guard,
        Ok(None) => return refusal::contended(&client, arguments),
        Err(LockError::Cancelled) => return Err(ended_by(signals.first_that_ends())),
        Err(error) => return Err(refusal::failed(&client, arguments, error)),
    };
    if let Some(signal) = signals.first_that_ends() {
        give_up(&client, arguments, guard);
        return Err(ended_by(Some(signal)));
    }
    let child = match start(&guard, arguments, &signals) {
        Ok(child) => child,
        Err(failure) => {
            give_up(&client, arguments, guard);
            return Err(failure);
        }
    };
    let (code, is_lost) = supervise(&guard, child, arguments, &signals, is_ensemble)?;
    let released = guard.release();
    if is_lost || matches!(released, Err(ReleaseError::Lost(_))) {
        return Err(refusal::named(arguments, exit::LOST, lost_text(is_lost)));
    }
    if let Err(error) = released {
        output::note(&format!("the lock may stay until its ttl ends: {error}"));
    }
    Ok(code)
}

/// Runs the command to its end. Returns its exit code, and whether it was stopped because the lock
/// was lost.
fn execute(
    guard: &LockGuard,
    arguments: &RunArguments,
    signals: &Signals,
    is_ensemble: bool,
) -> Result<(u8, bool), Failure> {
    let child = start(guard, arguments, signals)?;
    supervise(guard, child, arguments, signals, is_ensemble)
}

fn start(guard: &LockGuard, arguments: &RunArguments, signals: &Signals) -> Result<Child, Failure> {
    let variables = variables(arguments, guard);
    signals.start(|| Child::spawn(&arguments.command, &variables, !arguments.close))
}

fn supervise(
    guard: &LockGuard,
    child: Child,
    arguments: &RunArguments,
    signals: &Signals,
    is_ensemble: bool,
) -> Result<(u8, bool), Failure> {
    let least = least_validity(arguments, is_ensemble.then(|| guard.remaining()));
    Supervisor::new(guard, child, arguments.grace, least).run(signals)
}

/// With how much validity left the command is stopped, so that it can end before the lock does.
/// Less is never left while all is well: on Redis nodes, the lock is extended in each third of its
/// ttl. On an ensemble, where so much was left at first, the session is what counts.
fn least_validity(arguments: &RunArguments, of_session: Option<Duration>) -> Duration {
    let wanted = arguments.grace.max(4 * supervisor::KILL_AHEAD);
    match of_session {
        None => wanted.min(arguments.ttl / 3),
        Some(granted) => wanted.min(ensemble::least_validity(granted) / 2),
    }
}

fn ended_by(signal: Option<CaughtSignal>) -> Failure {
    let number = signal.map_or(0, |signal| signal.number);
    Failure::silent(exit::SIGNAL + u8::try_from(number).unwrap_or(0))
}

/// Releases a lock under which nothing has run.
fn give_up(client: &LockClient, arguments: &RunArguments, guard: LockGuard) {
    // The release leaves the lock on the nodes for as long as the arguments ask, and no command has
    // run. A permit and a share stay so long: they cannot be told from those of other holders.
    let is_alone = arguments.permits.is_none() && !arguments.shared;
    let lingers = arguments.hold_at_least.is_some() && is_alone;
    let seen = lingers.then(|| client.inspect(arguments.name.as_bytes()));
    // A lock that was held to the end is the one that was seen before the end.
    if let (Ok(()), Some(Ok(seen))) = (guard.release(), seen) {
        let _ = client.force_release(&seen);
    }
}

fn acquire(client: &LockClient, arguments: &RunArguments) -> Result<Option<LockGuard>, LockError> {
    let owner = match &arguments.owner {
        Some(owner) => owner.as_bytes().to_vec(),
        None => default_owner(),
    };
    let request = request(client, arguments, &owner);
    if arguments.no_wait {
        return request.try_lock();
    }
    let deadline = arguments.wait.map(|wait| Instant::now().checked_add(wait));
    let _line = WaitingLine::show(client, arguments.name.as_bytes(), &owner);
    match deadline {
        Some(Some(deadline)) => request.try_lock_until(deadline),
        // No limit, or one that overflows the clock.
        None | Some(None) => request.lock().map(Some),
    }
}

fn request<'a>(client: &'a LockClient, arguments: &RunArguments, owner: &[u8]) -> LockRequest<'a> {
    let mut request = client
        .request(arguments.name.as_bytes())
        .ttl(arguments.ttl)
        .keep_alive()
        .max_hold(arguments.max_hold.unwrap_or(NO_LIMIT))
        .owner(owner);
    if arguments.shared {
        request = request.shared();
    }
    if let Some(count) = arguments.permits {
        request = request.one_of(count);
    }
    if arguments.fenced {
        request = request.fenced();
    }
    request.hold_at_least(arguments.hold_at_least.unwrap_or(Duration::ZERO))
}

/// The host's name and the number of this process.
pub(crate) fn default_owner() -> Vec<u8> {
    let mut owner = rustix::system::uname().nodename().to_bytes().to_vec();
    owner.extend_from_slice(format!(":{}", std::process::id()).as_bytes());
    owner
}

/// The variables of the command. One without a value is removed: it may be of an outer
/// `redlatch run`.
fn variables(arguments: &RunArguments, guard: &LockGuard) -> [(&'static str, Option<Vec<u8>>); 3] {
    let number = |number: u64| number.to_string().into_bytes();
    [
        ("REDLATCH_LOCK", Some(OsStr::as_bytes(&arguments.name).to_vec())),
        ("REDLATCH_FENCING_TOKEN", guard.fencing_token().map(|token| number(token.as_u64()))),
        ("REDLATCH_PERMIT", guard.slot().map(|permit| number(permit.into()))),
    ]
}
