//! The line that a terminal shows while this program waits for the lock, and the lines that others
//! get.

use super::AcquireArguments;
use crate::exit::way_out;
use crate::groups::is_group;
use crate::inspect::{holder_name, not_a_lock_text, quarantine_text, shown};
use crate::log::Log;
use crate::run::is_in_foreground;
use crate::{duration, exit, output};
use redlatch::{Inspection, LockClient, LockState};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A lock that is granted sooner is not worth a line.
const FIRST: Duration = Duration::from_millis(400);
const NEXT: Duration = Duration::from_secs(1);

/// A log gets a line so often.
const LOGGED: Duration = Duration::from_secs(30);

/// How often the cause is looked at that is noted: whoever waits for less has nothing to report.
const NOTED: Duration = Duration::from_secs(10);

/// How long it may take to clear the line.
const CLEARED: Duration = Duration::from_millis(200);

/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Shown until it is dropped.
pub(crate) struct WaitingLine {
    stop: Option<Sender<()>>,
    /// Closes when the line is cleared.
    end: Receiver<()>,
}

/// What keeps this program from the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Others hold it, or are served first.
    Others,
    NotALock,
    /// What can be done about it.
    Quarantine(&'static str),
    /// Too few nodes answer.
    Nodes,
}

impl WaitingLine {
    /// Shows the line if stderr is a terminal, while this program is in its foreground: the line of
    /// a job in the background would clear what its user types. A log gets lines of its own
    /// instead, also without a terminal. Where there is neither, the journal of a service or a file
    /// gets a line now and then.
    pub(crate) fn show(
        client: &LockClient,
        arguments: &AcquireArguments,
        owner: &[u8],
        log: &Log,
    ) -> Self {
        let names = arguments.names().map(OsStr::to_owned).collect();
        let client = client.clone();
        let owner = owner.to_vec();
        let wait = Wait {
            client,
            names,
            owner,
            start: Instant::now(),
        };
        let logged = log.waiting();
        let shown = arguments.shown();
        // Then others that hold the lock are nothing to report, as on all machines but one.
        let is_quiet = arguments.conflict_exit_code == Some(exit::SUCCESS);
        let (stop, stopped) = channel();
        let (ended, end) = channel();
        let thread = thread::Builder::new();
        // Without one, nothing is said.
        let _ = thread.spawn(move || {
            let _ended: Sender<()> = ended;
            match logged {
                Some(log) => {
                    while goes_on(&stopped, LOGGED) {
                        log(&wait.look().1, wait.start.elapsed());
                    }
                }
                None if output::stderr_can_clear() => wait.show_line(&stopped),
                None => wait.note_causes(&stopped, &shown, is_quiet),
            }
        });
        Self {
            stop: Some(stop),
            end,
        }
    }
}

/// Is the lock still waited for after this time?
fn goes_on(stopped: &Receiver<()>, pause: Duration) -> bool {
    stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}

/// What is waited for, and by whom.
struct Wait {
    client: LockClient,
    names: Vec<OsString>,
    owner: Vec<u8>,
    start: Instant,
}

impl Wait {
    fn show_line(&self, stopped: &Receiver<()>) {
        let mut pause = FIRST;
        let mut is_hinted = false;
        while goes_on(stopped, pause) {
            if !is_in_foreground() {
                continue;
            }
            let (cause, text) = self.look();
            if let (Cause::Quarantine(way_out), false) = (cause, is_hinted) {
                output::write_to_stderr(&format!("{CLEAR}redlatch: {way_out}\n"));
                is_hinted = true;
            }
            let waited = duration::show(self.start.elapsed());
            let line = format!("redlatch: {text}; waiting for {waited}");
            // One that is longer than the terminal is wide could not be cleared.
            let line = output::cut(&line, output::stderr_width());
            output::write_to_stderr(&format!("{CLEAR}{line}"));
            pause = NEXT;
        }
        if pause == NEXT {
            output::write_to_stderr(CLEAR);
        }
    }

    /// Writes a line after a while, and again when the cause is another one.
    fn note_causes(&self, stopped: &Receiver<()>, shown: &str, is_quiet: bool) {
        let mut noted = is_quiet.then_some(Cause::Others);
        while goes_on(stopped, NOTED) {
            let (cause, mut text) = self.look();
            if let Cause::Quarantine(way_out) = cause {
                text = format!("{text}; {way_out}");
            }
            if noted != Some(cause) {
                let waited = duration::show(self.start.elapsed());
                output::note(&format!("{shown}: waiting for {waited}: {text}"));
                noted = Some(cause);
            }
        }
    }

    /// Of several locks, what keeps it from the first that is not free, with its name.
    fn look(&self) -> (Cause, String) {
        match super::look(&self.client, &self.names) {
            Ok(Some((_, seen))) if self.names.len() == 1 => {
                (cause(&seen), text(&seen, &self.owner))
            }
            Ok(Some((index, seen))) => {
                let name = shown(self.names[index].as_bytes());
                (
                    cause(&seen),
                    format!("{name}: {}", text(&seen, &self.owner)),
                )
            }
            Ok(None) => (Cause::Others, String::new()),
            Err(error) => (Cause::Nodes, error.to_string()),
        }
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A terminal that is stopped, by ^S, does not delay what the lock is held for.
        let _ = self.end.recv_timeout(CLEARED);
    }
}

fn cause(seen: &Inspection) -> Cause {
    match seen.state {
        LockState::NotALock(_) => Cause::NotALock,
        LockState::Free | LockState::Reserved if seen.quarantine.is_some() => {
            let is_group = seen.nodes.iter().any(|node| is_group(&node.url));
            let was_in_use = seen.nodes.iter().any(|node| node.former_reign.is_some());
            Cause::Quarantine(way_out(is_group, was_in_use))
        }
        _ => Cause::Others,
    }
}

/// Such as "third in line, held by host-7".
fn text(seen: &Inspection, owner: &[u8]) -> String {
    // Our place is the last with our label, in case another has the same.
    let mut labels = seen.waiters.iter();
    let index = labels.rposition(|waiter| waiter.owner().is_some_and(|name| name == owner));
    let place = match index {
        Some(index) => format!("{} in line, ", ordinal(index + 1)),
        // It is behind those that are listed.
        None if seen.waiter_count > seen.waiters.len() => {
            format!("one of {} in line, ", seen.waiter_count)
        }
        None => String::new(),
    };
    let state = match &seen.state {
        LockState::Held(one) => format!("held by {}", holder_name(one)),
        LockState::Shared(all) => match &all[..] {
            [one] => format!("held by {}", holder_name(one)),
            _ => format!("held by {} at a time", seen.holder_count),
        },
        LockState::NotALock(kind) => not_a_lock_text(*kind),
        LockState::Free => "free, not granted yet".to_owned(),
        LockState::Reserved => "about to be granted".to_owned(),
        _ => "undecided: no majority agrees".to_owned(),
    };
    match seen.quarantine.map(quarantine_text) {
        // Nobody gets the lock before its end.
        Some(text) if seen.state == LockState::Free || seen.state == LockState::Reserved => {
            format!("{place}{text}")
        }
        Some(text) => format!("{place}{state}, {text}"),
        None => format!("{place}{state}"),
    }
}

fn ordinal(number: usize) -> String {
    const WORDS: [&str; 9] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    ];
    if let Some(word) = WORDS.get(number.wrapping_sub(1)) {
        return (*word).to_owned();
    }
    let ending = match (number % 10, number / 10 % 10) {
        (_, 1) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn places_are_words_up_to_nine() {
        let expected = [
            (1, "first"),
            (3, "third"),
            (10, "10th"),
            (11, "11th"),
            (21, "21st"),
        ];
        for (number, text) in expected.into_iter().chain([(112, "112th"), (33, "33rd")]) {
            assert_eq!(ordinal(number), text);
        }
    }
}
