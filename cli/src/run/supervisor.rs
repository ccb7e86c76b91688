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
use super::descriptor::ReadingEnd;
use super::health_file::HealthFile;
use super::on_lost::OnLost;
use super::processes::{self, Process};
use super::signals::{CaughtSignal, Event, Signals, named, stop_itself};
use crate::exit::Failure;
use crate::inspect::shown;
use crate::output;
use redlatch::LockGuard;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{SIGTSTP, SIGTTIN, SIGTTOU};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// How long before the end of the validity the command is killed: to be dead by then.
pub(crate) const KILL_AHEAD: Duration = Duration::from_millis(50);

/// How long a command has been stopped before this program stops as well.
const SETTLE: Duration = Duration::from_millis(10);

/// The longest time between two looks at the validity: a timer does not count the time for which
/// the machine is suspended, and the validity does.
const LOOK: Duration = Duration::from_secs(1);

/// How long after the end of the command the user is told what it has left running, on a terminal
/// and elsewhere: there it would be noise about what ends by itself soon.
const TELL_AT_TERMINAL: Duration = Duration::from_millis(400);
const TELL: Duration = Duration::from_secs(10);

const LOSING: &str = "the lock is being lost: stopping the command";

pub(crate) struct Supervisor<'a> {
    guard: &'a LockGuard,
    child: Child,
    on_lost: &'a mut OnLost,
    /// It is removed with this.
    health: HealthFile,
    grace: Duration,
    /// The command is stopped when so much validity is left.
    least: Duration,
    /// When the command, which was asked to end, is killed.
    kill_at: Option<Instant>,
    is_killed: bool,
    /// When the command had ended.
    ended_at: Option<Instant>,
    is_closed: bool,
    /// Has the user been told that the command has left something running?
    is_told: bool,
    /// The command has a group of its own, and was stopped because it used the terminal.
    uses_terminal: bool,
}

impl<'a> Supervisor<'a> {
    pub(crate) fn new(
        guard: &'a LockGuard,
        child: Child,
        on_lost: &'a mut OnLost,
        health: HealthFile,
        grace: Duration,
        least: Duration,
    ) -> Self {
        Self {
            guard,
            child,
            on_lost,
            health,
            grace,
            least,
            kill_at: None,
            is_killed: false,
            ended_at: None,
            is_closed: false,
            is_told: false,
            uses_terminal: false,
        }
    }

    /// Returns the command's exit code when it and what it has left running have ended, and whether
    /// they were stopped because the lock was lost.
    pub(crate) fn run(mut self, signals: &Signals) -> Result<(u8, bool), Failure> {
        let reading_end = self.child.take_reading_end();
        if let Err(failure) = report_end(self.child.pid(), reading_end, signals.sender()) {
            // The failure releases the lock, and nothing may run on without it.
            self.child.kill_all();
            let _ = self.child.code();
            return Err(failure);
        }
        let sender = signals.sender();
        // Without a notifier the validity is still looked at.
        let _ = self.guard.on_lost(move |_| drop(sender.send(Event::Lost)));
        loop {
            let pause = self.look().min(self.tell());
            let own: Vec<Pid> = self
                .on_lost
                .pid()
                .into_iter()
                .chain([self.child.pid()])
                .collect();
            processes::reap_others(&own);
            match signals.inbox().recv_timeout(pause) {
                Ok(Event::Signal(signal)) => self.pass_on(signal),
                Ok(Event::Ended) => self.ended_at = Some(Instant::now()),
                Ok(Event::Closed) => self.is_closed = true,
                Ok(Event::Stopped(signal)) => self.stopped(signal),
                // It is time to look again.
                Ok(Event::Lost) | Err(_) => {}
            }
            // What was killed and does not end belongs to another user, or waits for a device.
            if self.ended_at.is_some() && (self.is_closed || self.is_killed) {
                return Ok((self.child.code()?, self.kill_at.is_some()));
            }
        }
    }

    /// Stops the command if the lock is about to be lost. Returns when to look again.
    fn look(&mut self) -> Duration {
        let left = self.guard.remaining();
        let now = Instant::now();
        match self.kill_at {
            None if left > self.least => {
                self.health.held(left);
                return (left - self.least).min(LOOK);
            }
            None => {
                self.health.remove();
                let before_end = left.saturating_sub(KILL_AHEAD);
                let grace = if left.is_zero() {
                    self.grace
                } else {
                    self.grace.min(before_end)
                };
                self.kill_at = Some(now + grace);
                self.on_lost.start();
                if !grace.is_zero() {
                    // A stopped process handles no SIGTERM.
                    self.child.signal_all(&[Signal::TERM, Signal::CONT]);
                    let names: Vec<_> = self
                        .guard
                        .resources()
                        .map(|name| shown(name.as_bytes()))
                        .collect();
                    output::note_aside(move || format!("{}: {LOSING}", names.join(", ")));
                }
            }
            Some(_) => {}
        }
        let kill_at = self.kill_at.unwrap_or(now);
        if now >= kill_at && !self.is_killed {
            self.is_killed = true;
            self.child.kill_all();
        }
        if self.is_killed {
            LOOK
        } else {
            kill_at.saturating_duration_since(now).min(LOOK)
        }
    }

    /// Tells the user once what this program waits for after the end of the command. Returns when
    /// to ask again.
    fn tell(&mut self) -> Duration {
        let Some(ended_at) = self.ended_at.filter(|_| !self.is_told) else {
            return LOOK;
        };
        let is_terminal = output::stderr_is_terminal();
        let pause = if is_terminal { TELL_AT_TERMINAL } else { TELL };
        let left = pause.saturating_sub(ended_at.elapsed());
        // Without a descriptor nothing is waited for, and this program is about to end.
        let Some(descriptor) = self.child.descriptor().filter(|_| left.is_zero()) else {
            return left.max(Duration::from_millis(1));
        };
        let descriptor = descriptor.clone();
        output::note_aside(move || left_text(&descriptor.holders(), is_terminal));
        self.is_told = true;
        LOOK
    }

    fn pass_on(&mut self, signal: CaughtSignal) {
        let Some(name) = named(signal.number) else {
            return;
        };
        let is_shared = !self.child.has_own_group();
        let has_reached = is_shared && signal.has_reached_child;
        // It may have ended without that having been reported yet: then it handles no signal.
        if self.child.has_ended() {
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
    fn pass_to_rest(&mut self, name: Signal, has_reached: bool) {
        match name {
            Signal::TSTP => {
                // Nobody extends the lock from now on. The processes may ignore TSTP, and the
                // kernel keeps it from those whose session no shell controls any more.
                self.child.stop_all();
                stop_itself();
            }
            Signal::CONT => self.child.continue_all(),
            Signal::INT | Signal::QUIT => self.child.signal_all(&[Signal::TERM]),
            _ if has_reached => {}
            _ => self.child.signal_all(&[name]),
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
    reading_end: Option<ReadingEnd>,
    sender: Sender<Event>,
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
                    let _ = signal.map(|signal| sender.send(Event::Stopped(signal)));
                }
                Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
        }
        let _ = sender.send(Event::Ended);
        reading_end.into_iter().for_each(ReadingEnd::wait);
        let _ = sender.send(Event::Closed);
    };
    let thread = thread::Builder::new().spawn(wait);
    thread
        .map(drop)
        .map_err(|error| Failure::system("no thread to wait for the command", &error))
}

/// What this program waits for, and what to do about it.
fn left_text(left: &[Process], is_terminal: bool) -> String {
    const SHOWN: usize = 5;
    let numbers = left
        .iter()
        .take(SHOWN)
        .map(|process| process.pid().to_string());
    let mut numbers: Vec<String> = numbers.collect();
    if left.len() > SHOWN {
        numbers.push(format!("{} more", left.len() - SHOWN));
    }
    let which = match left.len() {
        // Those of other users cannot be found.
        0 => String::new(),
        1 => format!(" (process {})", numbers[0]),
        _ => format!(" (processes {})", numbers.join(", ")),
    };
    let end = if is_terminal { "^C" } else { "TERM" };
    format!(
        "the command has ended; the lock is kept for what it has left running{which}; {end} ends \
         that, and --close would release the lock"
    )
}

pub(crate) fn lost_text(was_stopped: bool) -> &'static str {
    if was_stopped {
        "the lock was lost, and the command was stopped"
    } else {
        "the lock was lost before the command had ended"
    }
}
