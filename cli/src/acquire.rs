//! Acquires the lock that `redlatch run` and `redlatch lock` hold, and releases it.

pub(crate) mod refusal;
mod waiting_line;

use super::exit::{self, Failure};
use super::inspect::shown;
use super::log::{Log, LogFormat};
use super::run::is_below_another;
use super::run::signals::{CaughtSignal, Signals};
use super::{duration, names, output};
use clap::Args;
use redlatch::{ClientSettings, Error, Inspection, LockClient, LockGuard, LockRequest, LockState};
use serde::Deserialize;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{mem, thread};
use waiting_line::WaitingLine;

/// A command may run for as long as it takes. The library ends a lock that is kept alive after a
/// day, because the thread that holds it may hang; here the end of this program ends the lock.
const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// For how long the release is waited for at least, also if the lock is lost.
const RELEASED: Duration = Duration::from_millis(100);

const TTL: Duration = Duration::from_secs(30);

/// The variable with the name of the lock, for the command that runs under it.
pub(crate) const VARIABLE: &str = "REDLATCH_LOCK";

/// What the file of settings says about locks.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LockDefaults {
    #[serde(deserialize_with = "duration::in_file")]
    pub(crate) ttl: Option<Duration>,
    #[serde(deserialize_with = "duration::in_file")]
    pub(crate) wait: Option<Duration>,
    pub(crate) owner: Option<String>,
}

impl LockDefaults {
    /// The ttl of a command that names none.
    pub(crate) fn ttl(&self, max_ttl: Option<Duration>) -> Duration {
        self.ttl.unwrap_or(TTL.min(max_ttl.unwrap_or(TTL)))
    }
}

/// Which lock, how it is waited for, and how it is held.
#[derive(Debug, Args)]
pub(crate) struct AcquireArguments {
    /// The name of the lock.
    #[arg(add = names::locks())]
    pub(crate) name: OsString,
    /// Another lock that is held together with it, all or none; may be given again.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["shared", "permits"])]
    #[arg(add = names::locks())]
    pub(crate) also: Vec<OsString>,
    /// How long the lock stays taken if this program dies; on ZooKeeper, that is the session
    /// timeout [default: 30s, or --max-hold or --max-ttl if that is shorter].
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) ttl: Option<Duration>,
    /// Wait for the lock for no longer than this [default: no limit, even while too few nodes are
    /// up].
    #[arg(short, long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) wait: Option<Duration>,
    /// Do not wait for the lock.
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// Hold the lock together with other readers.
    #[arg(short, long)]
    pub(crate) shared: bool,
    /// Hold one of N permits.
    #[arg(long, value_name = "N", conflicts_with = "shared")]
    pub(crate) permits: Option<u32>,
    /// Keep the lock taken for so long, even if it is released earlier.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) hold_at_least: Option<Duration>,
    /// Hold the lock for no longer than this; then it is lost [default: no limit].
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) max_hold: Option<Duration>,
    /// Who holds the lock, for `redlatch inspect` [default: host:pid].
    #[arg(long, value_name = "TEXT")]
    pub(crate) owner: Option<OsString>,
    /// The exit code if others hold the lock or wait for it [default: 1 or 3], or the command is
    /// not due [default: 10]; with 0, nothing is printed either.
    #[arg(short = 'E', long, value_name = "CODE")]
    pub(crate) conflict_exit_code: Option<u8>,
    /// Log to stderr when the lock is waited for, held, extended, lost and released.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// The format of that log, which this asks for as well.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log: Option<LogFormat>,
}

impl AcquireArguments {
    /// The names of all locks that are held together.
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(&self.name)
            .chain(&self.also)
            .map(OsString::as_os_str)
    }

    /// Their names on one line.
    pub(crate) fn shown(&self) -> String {
        let names: Vec<String> = self.names().map(|name| shown(name.as_bytes())).collect();
        names.join(", ")
    }

    /// Takes from the file what is not among the arguments.
    pub(crate) fn complete(&mut self, file: LockDefaults, client: &ClientSettings) {
        let ttl = file.ttl(client.max_ttl);
        self.wait = self.wait.or(file.wait);
        self.owner = self
            .owner
            .take()
            .or(file.owner.map(OsString::from))
            .or_else(|| client.owner.clone().map(OsString::from_vec));
        self.ttl = self.ttl.or(Some(ttl.min(self.max_hold.unwrap_or(ttl))));
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.ttl.unwrap_or(TTL)
    }
}

/// A command under the lock that wants it again would wait for itself. It may get another share or
/// permit.
pub(crate) fn refuse_own(arguments: &AcquireArguments) -> Result<(), Failure> {
    let is_shared = arguments.shared || arguments.permits.is_some();
    let held = env::var_os(VARIABLE).filter(|_| !is_shared);
    let Some(own) = arguments
        .names()
        .find(|name| held.as_deref() == Some(*name))
    else {
        return Ok(());
    };
    // What a command has left running may still have the variable.
    if !is_below_another() {
        return Ok(());
    }
    let text = "this program runs under that lock, and would wait for itself";
    Err(refusal::named(
        own,
        exit::USAGE,
        &format!("{text} (variable {VARIABLE})"),
    ))
}

/// Waits for the lock as the arguments say. A signal that would end a program ends the waiting.
pub(crate) fn acquire(
    client: &LockClient,
    signals: &Signals,
    arguments: &AcquireArguments,
    is_fenced: bool,
    log: &Log,
) -> Result<LockGuard, Failure> {
    let start = Instant::now();
    let guard = match wait(client, arguments, is_fenced, log) {
        Ok(Some(guard)) => guard,
        Ok(None) => return Err(refusal::contended(client, arguments)),
        Err(Error::Cancelled) => return Err(ended_by(signals.first_that_ends())),
        Err(error) => return Err(refusal::failed(client, arguments, error)),
    };
    log.held(&guard, start.elapsed());
    if let Some(signal) = signals.first_that_ends() {
        give_up(guard);
        return Err(ended_by(Some(signal)));
    }
    Ok(guard)
}

/// Returns whether the lock was held to the end. If that cannot be known, the user is told.
#[must_use]
pub(crate) fn release(client: &LockClient, guard: LockGuard, is_ensemble: bool) -> bool {
    let left = guard.remaining().max(RELEASED);
    let (sender, released) = channel();
    let release = move || sender.send(guard.release());
    if is_ensemble {
        let _ = thread::Builder::new().spawn(release);
    } else {
        let _ = release();
    }
    let released = released.recv_timeout(left);
    if is_ensemble && !matches!(released, Ok(Ok(()))) {
        // It does not answer, and ends the session by itself. A client that is dropped waits for
        // the answer.
        mem::forget(client.clone());
    }
    match released {
        Ok(Ok(())) => true,
        Ok(Err(Error::Lost(_))) => false,
        Ok(Err(error)) => {
            output::note(&format!("the lock may stay until its ttl ends: {error}"));
            true
        }
        Err(_) => {
            output::note("the lock may stay until its session ends: no answer of the ensemble");
            true
        }
    }
}

pub(crate) fn ended_by(signal: Option<CaughtSignal>) -> Failure {
    let number = signal.map_or(0, |signal| signal.number);
    Failure::silent(exit::SIGNAL + u8::try_from(number).unwrap_or(0))
}

/// Releases a lock under which nothing has run.
pub(crate) fn give_up(mut guard: LockGuard) {
    guard.waive_hold_at_least();
    let _ = guard.release();
}

fn wait(
    client: &LockClient,
    arguments: &AcquireArguments,
    is_fenced: bool,
    log: &Log,
) -> Result<Option<LockGuard>, Error> {
    let owner = owner(arguments);
    let mut request = request(client, arguments, &owner);
    if is_fenced {
        request = request.fenced();
    }
    if arguments.no_wait {
        return request.try_lock();
    }
    let deadline = arguments.wait.map(|wait| Instant::now().checked_add(wait));
    let _line = WaitingLine::show(client, arguments, &owner, log);
    match deadline {
        Some(Some(deadline)) => request.try_lock_until(deadline),
        // No limit, or one that overflows the clock.
        None | Some(None) => request.lock().map(Some),
    }
}

pub(crate) fn request<'a>(
    client: &'a LockClient,
    arguments: &AcquireArguments,
    owner: &[u8],
) -> LockRequest<'a> {
    let names = arguments.names().map(OsStr::as_bytes);
    // For a single lock it is the same as for a set of one.
    let mut request = client
        .request_all(names)
        .ttl(arguments.ttl())
        .keep_alive()
        .max_hold(arguments.max_hold.unwrap_or(NO_LIMIT))
        .owner(owner);
    if arguments.shared {
        request = request.shared();
    }
    if let Some(count) = arguments.permits {
        request = request.one_of(count);
    }
    request.hold_at_least(arguments.hold_at_least.unwrap_or(Duration::ZERO))
}

/// A look at the lock; of several, at the first one that another client has, or else that is waited
/// for: those that are free are reserved for the one that waits for all.
fn look<N: AsRef<OsStr>>(
    client: &LockClient,
    names: &[N],
) -> Result<Option<(usize, Inspection)>, Error> {
    let mut found: Option<(u8, (usize, Inspection))> = None;
    for (index, name) in names.iter().enumerate() {
        let seen = client.inspect(name.as_ref().as_bytes())?;
        let obstacle = match seen.state {
            LockState::Free if seen.waiter_count == 0 => 0,
            LockState::Free | LockState::Reserved => 1,
            _ => 2,
        };
        if found
            .as_ref()
            .is_none_or(|(largest, _)| obstacle > *largest)
        {
            found = Some((obstacle, (index, seen)));
        }
        if obstacle == 2 {
            break;
        }
    }
    Ok(found.map(|(_, seen)| seen))
}

pub(crate) fn owner(arguments: &AcquireArguments) -> Vec<u8> {
    arguments
        .owner
        .as_ref()
        .map_or_else(default_owner, |owner| owner.as_bytes().to_vec())
}

/// The host's name and the number of this process.
pub(crate) fn default_owner() -> Vec<u8> {
    let mut owner = rustix::system::uname().nodename().to_bytes().to_vec();
    owner.extend_from_slice(format!(":{}", std::process::id()).as_bytes());
    owner
}
