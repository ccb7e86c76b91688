//! The line that a terminal shows while this program waits for the lock.

use super::AcquireArguments;
use crate::inspect::{holder_name, not_a_lock_text, quarantine_text, shown};
use crate::log::Log;
use crate::run::is_in_foreground;
use crate::{duration, output};
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

/// How long it may take to clear the line.
const CLEARED: Duration = Duration::from_millis(200);

/// Goes to the beginning of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// Shown until it is dropped.
pub(crate) struct WaitingLine {
    stop: Option<Sender<()>>,
    /// Closes when the line is cleared.
    end: Option<Receiver<()>>,
}

impl WaitingLine {
    /// Shows the line if stderr is a terminal, while this program is in its foreground: the line of
    /// a job in the background would clear what its user types. A log gets lines of its own
    /// instead, also without a terminal.
    pub(crate) fn show(
        client: &LockClient,
        arguments: &AcquireArguments,
        owner: &[u8],
        log: &Log,
    ) -> Self {
        let logged = log.waiting();
        if logged.is_none() && !output::stderr_can_clear() {
            return Self { stop: None, end: None };
        }
        let (client, owner) = (client.clone(), owner.to_vec());
        let names: Vec<OsString> = arguments.names().map(OsStr::to_owned).collect();
        let (stop, stopped) = channel();
        let (ended, end) = channel();
        thread::spawn(move || {
            let _ended: Sender<()> = ended;
            let start = Instant::now();
            if let Some(log) = logged {
                while stopped.recv_timeout(LOGGED) == Err(RecvTimeoutError::Timeout) {
                    log(&look_text(&client, &names, &owner), start.elapsed());
                }
                return;
            }
            let mut pause = FIRST;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                if !is_in_foreground() {
                    continue;
                }
                let text = look_text(&client, &names, &owner);
                let waited = duration::show(start.elapsed());
                let line = format!("redlatch: {text}; waiting for {waited}");
                // One that is longer than the terminal is wide could not be cleared.
                let line = output::cut(&line, output::stderr_width());
                output::write_to_stderr(&format!("{CLEAR}{line}"));
                pause = NEXT;
            }
            if pause == NEXT {
                output::write_to_stderr(CLEAR);
            }
        });
        Self { stop: Some(stop), end: Some(end) }
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(end) = self.end.take() {
            // A terminal that is stopped, by ^S, does not delay what the lock is held for.
            let _ = end.recv_timeout(CLEARED);
        }
    }
}

/// Of several locks, that of the first that is not free, with its name.
fn look_text(client: &LockClient, names: &[OsString], owner: &[u8]) -> String {
    match super::look(client, names) {
        Ok(Some((_, seen))) if names.len() == 1 => text(&seen, owner),
        Ok(Some((index, seen))) => {
            format!("{}: {}", shown(names[index].as_bytes()), text(&seen, owner))
        }
        Ok(None) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// Such as "third in line, held by host-7".
fn text(seen: &Inspection, owner: &[u8]) -> String {
    // Our place is the last with our label, in case another has the same.
    let mut labels = seen.waiters.iter();
    let place = labels.rposition(|waiter| waiter.owner().is_some_and(|name| name == owner));
    let place = match place {
        Some(place) => format!("{} in line, ", ordinal(place + 1)),
        // It is behind those that are listed.
        None if seen.waiter_count > seen.waiters.len() => {
            format!("one of {} in line, ", seen.waiter_count)
        }
        None => String::new(),
    };
    let holder = |holder: &redlatch::Holder| format!("held by {}", holder_name(holder));
    let state = match &seen.state {
        LockState::Held(one) => holder(one),
        LockState::Shared(all) if all.len() == 1 => holder(&all[0]),
        LockState::Shared(_) => format!("held by {} at a time", seen.holder_count),
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
    const WORDS: [&str; 9] =
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"];
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
        let expected = [(1, "first"), (3, "third"), (10, "10th"), (11, "11th"), (21, "21st")];
        for (number, text) in expected.into_iter().chain([(112, "112th"), (33, "33rd")]) {
            assert_eq!(ordinal(number), text);
        }
    }
}
