//! `redlatch lock`: a lock for a script, which holds it until it closes a pipe or sends a signal.

use super::acquire::{self, AcquireArguments, refusal};
use super::arguments::NodeArguments;
use super::exit::{self, Failure};
use super::inspect::exact;
use super::log::Log;
use super::run::is_in_foreground;
use super::run::signals::{Event, Signals};
use super::service::Service;
use super::{output, settings};
use clap::Args;
use redlatch::{CancelToken, FencingToken, LockGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use serde_json::json;
use std::io::{self, IsTerminal, Stdin};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// The longest time between two looks at the validity, and at whether the terminal is ours: a timer
/// does not count the time for which the machine is suspended, and the validity does.
const LOOK: Duration = Duration::from_secs(1);

const LOST: &str = "the lock was lost";

/// Hold a lock until standard input ends or a signal comes.
///
/// Waits for its turn, prints the fencing token, a number that grows with every grant, on a line of
/// its own, and keeps the lock alive. When its standard input ends, or INT, TERM, HUP or QUIT
/// comes, it releases the lock and exits with 0. If the lock is lost meanwhile, it says so and
/// exits with 75 at once. An input that ends before the lock is held, as /dev/null does, is refused
/// with 2.
///
/// TIME is written as 500ms, 30s, 5m or 1h30m; a number alone is seconds.
///
/// With --permits, the number of the permit stands behind the token, after a space.
#[derive(Debug, Args)]
#[command(after_long_help = format!("Examples:\n{EXAMPLES}\n{}", exit::help()))]
pub(crate) struct LockArguments {
    #[command(flatten)]
    pub(crate) acquire: AcquireArguments,
    /// Hold it until a signal comes, also when standard input has ended: for services, and for
    /// scripts that start it in the background, where that is /dev/null.
    #[arg(long)]
    pub(crate) until_signal: bool,
    /// Tell systemd when the lock is held, for a service with Type=notify, which also needs a long
    /// TimeoutStartSec.
    #[arg(long)]
    pub(crate) notify: bool,
    /// Print the token as JSON: an object on a line of its own.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) const EXAMPLES: &str =
    "  coproc redlatch lock deploy --wait 10m && read -u ${COPROC[0]} token
  redlatch lock maintenance --until-signal
";

pub(crate) fn lock(nodes: &NodeArguments, mut arguments: LockArguments) -> Result<u8, Failure> {
    acquire::refuse_own(&arguments.acquire)?;
    if !arguments.until_signal && is_over() {
        return Err(no_input(&arguments));
    }
    let log = Log::start(&arguments.acquire);
    let (client, is_ensemble) = settings::lock_client(nodes, &mut arguments.acquire, &log)?;
    let signals = Signals::catch(client.cancel_token())?;
    let input = Input::default();
    if !arguments.until_signal {
        input.watch(signals.sender(), client.cancel_token())?;
    }
    let service = Service::new(arguments.notify, &arguments.acquire);
    service.waiting();
    let guard = acquire::acquire(&client, &signals, &arguments.acquire, true, &log)
        // The waiting was ended, and by no signal.
        .map_err(|failure| {
            if failure.code == exit::SIGNAL {
                no_input(&arguments)
            } else {
                failure
            }
        })?;
    if input.has_ended() {
        acquire::give_up(guard);
        return Err(no_input(&arguments));
    }
    if let Err(failure) = announce(&arguments, &guard, &signals) {
        acquire::give_up(guard);
        return Err(failure);
    }
    service.held();
    let is_lost = hold(&guard, &signals);
    service.stopping();
    if !acquire::release(&client, guard, is_ensemble) || is_lost {
        log.lost(LOST);
        return Err(refusal::lost(&arguments.acquire, LOST));
    }
    Ok(exit::SUCCESS)
}

/// Prints what the script waits for. Then the lock is in use.
fn announce(
    arguments: &LockArguments,
    guard: &LockGuard,
    signals: &Signals,
) -> Result<(), Failure> {
    let sender = signals.sender();
    // Without a notifier the validity is still looked at.
    let _ = guard.on_lost(move |_| drop(sender.send(Event::Lost)));
    output::print(&granted_text(arguments, guard))
}

/// What is printed when the lock was got.
fn granted_text(arguments: &LockArguments, guard: &LockGuard) -> String {
    let token = guard.fencing_token().map(FencingToken::as_u64);
    if arguments.json {
        let names: Vec<_> = arguments
            .acquire
            .names()
            .map(|name| exact(name.as_bytes()))
            .collect();
        let object = json!({
            "name": names[0],
            "also": names[1..],
            "fencing_token": token,
            "permit": guard.slot(),
        });
        return format!("{object}\n");
    }
    let numbers = token.into_iter().chain(guard.slot().map(u64::from));
    let words: Vec<String> = numbers.map(|number| number.to_string()).collect();
    format!("{}\n", words.join(" "))
}

/// Returns when the lock is to be released, or is lost, and whether it is lost.
fn hold(guard: &LockGuard, signals: &Signals) -> bool {
    loop {
        let left = guard.remaining();
        if left.is_zero() {
            return true;
        }
        match signals.inbox().recv_timeout(left.min(LOOK)) {
            Ok(Event::Closed) => return false,
            Ok(Event::Signal(signal)) if signal.is_ending() => return false,
            _ => {}
        }
    }
}

/// Standard input, whose end releases the lock. What is written there means nothing.
#[derive(Clone, Default)]
struct Input {
    has_ended: Arc<AtomicBool>,
}

impl Input {
    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// Reports when it has ended, and ends the waiting for a lock that could not be held.
    fn watch(&self, sender: Sender<Event>, cancel: CancelToken) -> Result<(), Failure> {
        let input = self.clone();
        let wait = move || {
            let stdin = io::stdin();
            loop {
                // To read from the terminal in its background would stop this program.
                if stdin.is_terminal() && !is_in_foreground() {
                    thread::sleep(LOOK);
                } else if ends_within(&stdin, LOOK) {
                    break;
                }
            }
            input.has_ended.store(true, Ordering::SeqCst);
            let _ = sender.send(Event::Closed);
            cancel.cancel();
        };
        let thread = thread::Builder::new().spawn(wait);
        let failure = |error| Failure::system("no thread to read standard input", &error);
        thread.map(drop).map_err(failure)
    }
}

/// Has standard input ended already? That of a script's background is /dev/null. A file has,
/// however long it takes to read.
fn is_over() -> bool {
    let stdin = io::stdin();
    let kind = fstat(&stdin).map(|found| FileType::from_raw_mode(found.st_mode));
    kind == Ok(FileType::RegularFile) || !stdin.is_terminal() && ends_within(&stdin, Duration::ZERO)
}

/// Whether a look at standard input, which waits for no longer than this, finds its end.
fn ends_within(stdin: &Stdin, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).ok();
    let ready = poll(&mut [PollFd::new(stdin, PollFlags::IN)], limit.as_ref());
    let mut bytes = [0; 4096];
    ready != Ok(0) && is_at_end(rustix::io::read(stdin, &mut bytes))
}

/// The lock was not held, and whoever goes on after this works without it.
fn no_input(arguments: &LockArguments) -> Failure {
    let text = "not locked: standard input has ended, and its end releases the lock; keep a pipe \
                open, or hold it until a signal comes (--until-signal)";
    refusal::named(&arguments.acquire.name, exit::USAGE, text)
}

fn is_at_end(read: Result<usize, rustix::io::Errno>) -> bool {
    match read {
        Ok(count) => count == 0,
        Err(error) => error != rustix::io::Errno::INTR,
    }
}
