//! Looks after the command while it runs: passes signals on, and stops it when the lock is lost.
//!
//! ```text
//! validity  |------------------ extended every third of the ttl ------|-- not extended --|
//!                                                                  SIGTERM      SIGKILL  end
//! ```
//!
//! A command that can be stopped is stopped before the validity ends: no other client can have the
//! lock until then.

use super::child::Child;
use super::descriptor::Descriptor;
use super::signals::{CaughtSignal, Happening, Signals, named, stop_itself};
use crate::exit::Failure;
use crate::output;
use redlatch::LockGuard;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{SIGTSTP, SIGTTIN, SIGTTOU};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// How long before the end of the validity the command is killed: to be dead by then.
const KILL_AHEAD: Duration = Duration::from_millis(50);

/// How long a command has been stopped before this program stops as well.
const SETTLE: Duration = Duration::from_millis(10);

/// The longest time between two looks at the validity: a timer does not count the time for which
/// the machine is suspended, and the validity does.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Supervisor<'a> {
    guard: &'a LockGuard,
    child: Child,
    grace: Duration,
    /// The command is stopped when so much validity is left. In each third of a ttl it is extended.
    least: Duration,
    /// When the command, which was asked to end, is killed.
    kill_at: Option<Instant>,
    is_killed: bool,
    has_ended: bool,
    is_closed: bool,
    /// Has the user been told that the command has left something running?
    is_told: bool,
    /// The command has a group of its own, and was stopped because it used the terminal.
    uses_terminal: bool,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(guard: &'a LockGuard, child: Child, ttl: Duration, grace: Duration) -> Self {
        let least = grace.max(4 * KILL_AHEAD).min(ttl / 3);
        Self {
            guard,
            child,
            grace,
            least,
            kill_at: None,
            is_killed: false,
            has_ended: false,
            is_closed: false,
            is_told: false,
            uses_terminal: false,
        }
    }

    /// Returns the command's exit code when it and what it has left running have ended, and whether
    /// they were stopped because the lock was lost.
    pub(crate) fn run(mut self, signals: &Signals) -> Result<(u8, bool), Failure> {
        let descriptor = self.child.descriptor().map(Descriptor::try_clone).transpose();
        let descriptor = descriptor.map_err(|error| Failure::system("no descriptor", &error))?;
        report_end(self.child.pid(), descriptor, signals.sender())?;
        let sender = signals.sender();
        // Without a notifier the validity is still looked at.
        let _ = self.guard.on_lost(move |_| drop(sender.send(Happening::Lost)));
        loop {
            let pause = self.look();
            match signals.inbox().recv_timeout(pause) {
                Ok(Happening::Signal(signal)) => self.pass_on(signal),
                Ok(Happening::Ended) => self.has_ended = true,
                Ok(Happening::Closed) => self.is_closed = true,
                Ok(Happening::Stopped(signal)) => self.stopped(signal),
                Ok(Happening::Lost) => {}
                Err(_) => self.tell(),
            }
            // What was killed and does not end belongs to another user.
            if self.has_ended && (self.is_closed || self.is_killed) {
                return Ok((self.child.code()?, self.kill_at.is_some()));
            }
        }
    }

    /// Stops the command if the lock is about to be lost. Returns when to look again.
    fn look(&mut self) -> Duration {
        let left = self.guard.remaining();
        let now = Instant::now();
        match self.kill_at {
            None if left > self.least => return (left - self.least).min(LOOK),
            None => {
                let before_end = left.saturating_sub(KILL_AHEAD);
                let grace = if left.is_zero() { self.grace } else { self.grace.min(before_end) };
                self.kill_at = Some(now + grace);
                if !grace.is_zero() {
                    self.child.signal_all(Signal::TERM);
                    self.child.signal_all(Signal::CONT); // a stopped process handles no SIGTERM
                    output::note_aside("the lock is being lost: stopping the command");
                }
            }
            Some(_) => {}
        }
        let kill_at = self.kill_at.unwrap_or(now);
        if now >= kill_at && !self.is_killed {
            self.is_killed = true;
            self.child.kill_all();
        }
        if self.is_killed { LOOK } else { kill_at.saturating_duration_since(now).min(LOOK) }
    }

    /// Tells a user at a terminal what this program waits for after the end of the command.
    fn tell(&mut self) {
        if self.has_ended && !self.is_told && output::stderr_is_terminal() {
            let text = "the command has ended; the lock is kept for what it has left running \
                        (--close would release it)";
            output::note_aside(text);
        }
        self.is_told = self.has_ended;
    }

    fn pass_on(&self, signal: CaughtSignal) {
        let Some(name) = named(signal.number) else { return };
        let is_shared = !self.child.has_own_group();
        let has_reached = is_shared && signal.has_reached_child;
        if self.has_ended {
            return self.pass_to_rest(name, has_reached);
        }
        if has_reached {
            return;
        }
        if name == Signal::CONT && self.uses_terminal {
            let _ = self.child.give_terminal();
        }
        self.child.signal(name);
    }

    /// Passes a signal on to what the command has left running. Shells have processes in the
    /// background ignore INT and QUIT: these get TERM instead.
    fn pass_to_rest(&self, name: Signal, has_reached: bool) {
        match name {
            Signal::INT | Signal::QUIT => self.child.signal_all(Signal::TERM),
            _ if has_reached => {}
            _ => self.child.signal_all(name),
        }
        if name == Signal::TSTP {
            stop_itself();
        }
    }

    /// Stops this program with its command, whose lock is not extended then. A command that ignores
    /// SIGTSTP runs on, and its lock is extended.
    fn stopped(&mut self, signal: i32) {
        let wants_terminal = [SIGTTIN, SIGTTOU].contains(&signal);
        if !self.child.has_own_group() {
            stop_itself();
        } else if wants_terminal && self.child.give_terminal() {
            self.child.signal(Signal::CONT);
        } else if wants_terminal || signal == SIGTSTP {
            // What uses the terminal gets it when the shell gives it to this program.
            stop_itself();
        }
        self.uses_terminal |= wants_terminal;
    }
}

/// Reports each stop of the command, and its end. It stays to be waited for: until then its number
/// belongs to no other process, and signals reach no stranger.
///
/// Then reports when no process has its descriptor any more.
fn report_end(
    pid: Pid,
    descriptor: Option<Descriptor>,
    sender: Sender<Happening>,
) -> Result<(), Failure> {
    let wait = move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(pid), options) {
                Ok(Some(status)) if status.stopped() => {
                    // What continues this program may be about to continue the command.
                    thread::sleep(SETTLE);
                    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                    let status = waitid(WaitId::Pid(pid), options).ok().flatten();
                    let signal = status.and_then(|status| status.stopping_signal());
                    let _ = signal.map(|signal| sender.send(Happening::Stopped(signal)));
                }
                Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
        }
        let _ = sender.send(Happening::Ended);
        descriptor.into_iter().for_each(Descriptor::wait);
        let _ = sender.send(Happening::Closed);
    };
    let thread = thread::Builder::new().spawn(wait);
    thread.map(drop).map_err(|error| Failure::system("no thread to wait for the command", &error))
}

pub(crate) fn lost_text(was_stopped: bool) -> &'static str {
    if was_stopped {
        "the lock was lost, and the command was stopped"
    } else {
        "the lock was lost before the command had ended"
    }
}
