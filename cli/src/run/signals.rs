//! Signals to this program: which came, and whether the terminal sent them.

use super::child::Child;
use crate::exit::{self, Failure};
use redlatch::CancelToken;
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2,
};
use signal_hook::flag;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// These end a program that does not expect them.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
const PASSED_ON: [i32; 2] = [SIGUSR1, SIGUSR2];
/// This program stops when its command does, and not before: nobody would keep the lock of a
/// command that ignores SIGTSTP.
const JOB_CONTROL: [i32; 2] = [SIGTSTP, SIGCONT];

const UNCAUGHT: &str = "signals cannot be caught";

/// Nothing starts for so long but a process that was stopped meanwhile.
const START_MAX: Duration = Duration::from_secs(1);

/// Has signals end this program also as the first process of a container, which the kernel keeps
/// those from that it does not catch. For subcommands that catch none.
pub(crate) fn end_first_process() -> Result<(), Failure> {
    let ignored = ignored();
    let is_expected = |signal: &i32| getpid().is_init() && ignored >> (signal - 1) & 1 == 0;
    for signal in ENDING.into_iter().filter(is_expected) {
        let code = i32::from(exit::SIGNAL) + signal;
        let always = Arc::new(AtomicBool::new(true));
        flag::register_conditional_shutdown(signal, code, always)
            .map_err(|error| Failure::system(UNCAUGHT, &error))?;
    }
    Ok(())
}

/// What this program waits for while the command runs.
pub(crate) enum Event {
    Signal(CaughtSignal),
    /// This signal has stopped the command.
    Stopped(i32),
    /// The command has ended, and can be waited for.
    Ended,
    /// No process has the command's descriptor any more. Of `redlatch lock`: standard input has
    /// ended.
    Closed,
    /// The lock was lost.
    Lost,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CaughtSignal {
    pub(crate) number: i32,
    /// The terminal sent it, to every process of the foreground, when the command ran already.
    pub(crate) has_reached_child: bool,
}

/// How far the command is. The lock is waited for first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Waiting,
    /// It may have been started already.
    Starting,
    Running,
}

#[derive(Debug)]
struct Progress {
    phase: Mutex<Phase>,
    changed: Condvar,
}

pub(crate) struct Signals {
    sender: Sender<Event>,
    inbox: Receiver<Event>,
    progress: Arc<Progress>,
}

impl Signals {
    /// Catches signals from now on. Before the command runs, one that ends a program cancels the
    /// waiting for the lock.
    pub(crate) fn catch(cancel: CancelToken) -> Result<Self, Failure> {
        let (sender, inbox) = channel();
        let progress = Arc::new(Progress {
            phase: Mutex::new(Phase::Waiting),
            changed: Condvar::new(),
        });
        let all = ENDING.into_iter().chain(PASSED_ON).chain(JOB_CONTROL);
        let mut caught: Vec<i32> = all.collect();
        // A signal that was ignored when this program started, by nohup for instance, stays so, and
        // the command inherits that.
        let ignored = ignored();
        caught.retain(|signal| ignored >> (signal - 1) & 1 == 0);
        let failure = |error| Failure::system(UNCAUGHT, &error);
        // If SIGCHLD is ignored, the exit code of a command cannot be had. Any handler ends that.
        let _ = flag::register(SIGCHLD, Arc::default()).map_err(failure)?;
        let mut source = Source::new(&caught).map_err(failure)?;
        let to = sender.clone();
        let seen = Arc::clone(&progress);
        thread::spawn(move || {
            for origin in source.forever() {
                let (number, is_of_terminal) = read(&origin);
                let is_running = *seen.phase() == Phase::Running;
                if number == SIGTSTP && seen.stop_unless_running() {
                    continue;
                }
                let has_reached_child = is_running && is_of_terminal;
                let signal = CaughtSignal {
                    number,
                    has_reached_child,
                };
                // Before it cancels the waiting, whose caller asks which signal that was.
                if to.send(Event::Signal(signal)).is_err() {
                    return;
                }
                if !is_running && ENDING.contains(&number) {
                    cancel.cancel();
                }
            }
        });
        Ok(Self {
            sender,
            inbox,
            progress,
        })
    }

    /// Starts the command. Once it runs, signals are for the command.
    pub(crate) fn start(
        &self,
        spawn: impl FnOnce() -> Result<Child, Failure>,
    ) -> Result<Child, Failure> {
        self.progress.set(Phase::Starting);
        let child = spawn();
        self.progress.set(if child.is_ok() {
            Phase::Running
        } else {
            Phase::Waiting
        });
        child
    }

    pub(crate) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    pub(crate) fn inbox(&self) -> &Receiver<Event> {
        &self.inbox
    }

    /// The first signal so far that ends a program. The others before it have nobody to go to.
    pub(crate) fn first_that_ends(&self) -> Option<CaughtSignal> {
        self.inbox.try_iter().find_map(|happening| match happening {
            Event::Signal(signal) if signal.is_ending() => Some(signal),
            _ => None,
        })
    }
}

impl CaughtSignal {
    /// Does it end a program that does not expect it?
    pub(crate) fn is_ending(self) -> bool {
        ENDING.contains(&self.number)
    }
}

impl Progress {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops this program, unless the command runs: then it depends on the command, which may
    /// ignore SIGTSTP. So a command that starts is waited for.
    ///
    /// No command starts while this program stops: nobody would keep its lock.
    fn stop_unless_running(&self) -> bool {
        let starts = |phase: &mut Phase| *phase == Phase::Starting;
        let waited = self
            .changed
            .wait_timeout_while(self.phase(), START_MAX, starts);
        let (phase, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let stops = *phase != Phase::Running;
        if stops {
            stop_itself();
        }
        stops
    }

    fn set(&self, phase: Phase) {
        *self.phase() = phase;
        self.changed.notify_all();
    }
}

/// Stops this program, as its shell expects of a job. What continues it continues the command.
pub(crate) fn stop_itself() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// The signal to pass on. `None` if it is none that is caught.
pub(crate) fn named(number: i32) -> Option<Signal> {
    Signal::from_named_raw(number)
}

/// The signals that this process ignores, as a set of bits. Linux tells.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(target_os = "linux")]
use signal_hook::iterator::{SignalsInfo, exfiltrator::WithOrigin};

#[cfg(target_os = "linux")]
type Source = SignalsInfo<WithOrigin>;

/// The signal, and whether the terminal sent it.
#[cfg(target_os = "linux")]
fn read(origin: &signal_hook::low_level::siginfo::Origin) -> (i32, bool) {
    let is_of_kernel = origin.cause == signal_hook::low_level::siginfo::Cause::Kernel;
    // When the terminal is gone, as under `ssh -t`, the kernel tells only the session's leader.
    let is_for_us_only = origin.signal == SIGHUP && super::processes::may_lead_session();
    (origin.signal, is_of_kernel && !is_for_us_only)
}

#[cfg(not(target_os = "linux"))]
type Source = signal_hook::iterator::Signals;

/// The signal, and whether the terminal may have sent it.
#[cfg(not(target_os = "linux"))]
fn read(signal: &i32) -> (i32, bool) {
    (
        *signal,
        [SIGINT, SIGQUIT].contains(signal) && super::child::is_in_foreground(),
    )
}
