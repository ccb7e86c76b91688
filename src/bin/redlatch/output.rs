//! The only place that writes to stdout and stderr. A closed pipe ends the program, without a
//! panic.

use super::exit::Failure;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::thread;

/// Writes to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
        match error.kind() {
            ErrorKind::BrokenPipe => Failure::closed_pipe(),
            _ => Failure::system("stdout", &error),
        }
    })
}

/// Writes a line to stderr. If nobody can read it, that is no reason to stop.
pub(crate) fn note(text: &str) {
    let _ = io::stderr().lock().write_all(format!("redlatch: {text}\n").as_bytes());
}

/// As [`note`], but waits for no reader: for a program that has something else to do meanwhile. The
/// pipe may be full, or the terminal may be stopped.
pub(crate) fn note_aside(text: &'static str) {
    // Without a thread, the note is what can be missed.
    let _ = thread::Builder::new().spawn(move || note(text));
}

/// Writes text as it is to stderr.
pub(crate) fn write_to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// How many characters a line on the terminal may have, so that it does not wrap.
pub(crate) fn stderr_width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    columns.unwrap_or(80) - 1
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}
