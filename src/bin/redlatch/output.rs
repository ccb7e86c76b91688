//! The only place that writes to stdout and stderr. A closed pipe ends the program, without a
//! panic.

use super::exit::Failure;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::thread;
use std::time::Duration;

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

/// Clears the terminal and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Prints what `look` returns, once, or again and again with such pauses. Then a failure is shown,
/// and ends nothing. On a terminal, a text for people takes the place of the one before.
pub(crate) fn watch(
    pause: Option<Duration>,
    is_for_people: bool,
    look: impl Fn() -> Result<(String, u8), Failure>,
) -> Result<u8, Failure> {
    let Some(pause) = pause else {
        let (text, code) = look()?;
        print(&text)?;
        return Ok(code);
    };
    let clear = if is_for_people && stdout_is_terminal() { CLEAR } else { "" };
    loop {
        match look() {
            Ok((text, _)) => print(&format!("{clear}{text}"))?,
            Err(failure) => {
                print(clear)?;
                note(&failure.text);
            }
        }
        thread::sleep(pause);
    }
}

/// Writes a line to stderr. If nobody can read it, that is no reason to stop.
pub(crate) fn note(text: &str) {
    let _ = io::stderr().lock().write_all(format!("redlatch: {text}\n").as_bytes());
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
