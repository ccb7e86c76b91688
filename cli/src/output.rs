//! The only place that writes to stdout and stderr. A closed pipe ends the program, without a
//! panic.

use super::exit::Failure;
use super::table;
use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;
use unicode_width::UnicodeWidthChar;

/// Writes to stdout.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to stdout, as they are.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::closed_pipe(),
            _ => Failure::system("stdout", &error),
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
    let is_screen = is_for_people && stdout_is_terminal();
    loop {
        match look() {
            Ok((text, _)) if is_screen => print(&format!("{CLEAR}{}", first_screen(&text)))?,
            Ok((text, _)) => print(&text)?,
            Err(failure) => {
                print(if is_screen { CLEAR } else { "" })?;
                note(&failure.text);
            }
        }
        thread::sleep(pause);
    }
}

/// The first lines of the text, as many as the terminal shows at once: the rest would move them out
/// of sight.
fn first_screen(text: &str) -> String {
    let (rows, columns) = match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    };
    fitting(text, usize::from(rows) - 1, usize::from(columns))
}

/// The first lines of the text that take no more than this many rows of a terminal; one at least.
fn fitting(text: &str, rows: usize, columns: usize) -> String {
    let mut used = 0;
    let mut shown = String::new();
    for line in text.split_inclusive('\n') {
        let is_first = used == 0;
        used += table::width(line.trim_end()).div_ceil(columns).max(1);
        if !is_first && used > rows {
            break;
        }
        shown += line;
    }
    shown
}

/// Writes a line to stderr. If nobody can read it, that is no reason to stop.
pub(crate) fn note(text: &str) {
    write_to_stderr(&format!("redlatch: {}\n", visible(text)));
}

/// The text with escapes for what would act on a terminal instead of being shown, as in names of
/// files. Line breaks stay.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars() {
        let escaped = character.escape_debug();
        let is_unseen = character.is_control() || escaped.clone().nth(1) == Some('u');
        if is_unseen && character != '\n' {
            shown.extend(escaped);
        } else {
            shown.push(character);
        }
    }
    shown
}

/// As [`note`], but waits for no reader: for a program that has something else to do meanwhile. The
/// pipe may be full, or the terminal may be stopped.
pub(crate) fn note_aside(text: impl FnOnce() -> String + Send + 'static) {
    // Without a thread, the note is what can be missed.
    let _ = thread::Builder::new().spawn(move || note(&text()));
}

/// Writes text as it is to stderr.
pub(crate) fn write_to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Is it a terminal on which a line can be cleared?
pub(crate) fn stderr_can_clear() -> bool {
    stderr_is_terminal() && env::var_os("TERM").is_some_and(|name| name != "dumb")
}

/// How many characters a line on the terminal may have, so that it does not wrap.
pub(crate) fn stderr_width() -> usize {
    width_of(io::stderr()).unwrap_or(80) - 1
}

/// The beginning of the text that takes no more than this many columns.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (end, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used > columns {
            return &text[..end];
        }
    }
    text
}

/// How many columns the terminal has that stdout is. `None` if it is none, or does not tell.
pub(crate) fn stdout_width() -> Option<usize> {
    width_of(io::stdout())
}

fn width_of(terminal: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok();
    size.map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// May text on stdout be bold or coloured? See <https://no-color.org>.
pub(crate) fn stdout_has_colours() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    stdout_is_terminal()
        && !is_set("NO_COLOR")
        && env::var_os("TERM").is_some_and(|it| it != "dumb")
}

#[cfg(test)]
mod tests {
    use super::{cut, fitting, visible};

    #[test]
    fn what_acts_on_a_terminal_is_escaped() {
        assert_eq!(
            visible("\x1b[31m\u{202e}\u{9b}\r"),
            "\\u{1b}[31m\\u{202e}\\u{9b}\\r"
        );
        assert_eq!(
            visible("it's \"ü\"\\\n日本 ≤ µs"),
            "it's \"ü\"\\\n日本 ≤ µs"
        );
    }

    #[test]
    fn what_does_not_fit_on_the_terminal_is_left_out_at_the_end() {
        assert_eq!(fitting("a\nb\nc\n", 9, 80), "a\nb\nc\n");
        assert_eq!(fitting("a\nb\nc\n", 3, 80), "a\nb\nc\n");
        assert_eq!(fitting("a\nb\nc\n", 2, 80), "a\nb\n");
        assert_eq!(fitting("wrapped\nb\nc\n", 3, 4), "wrapped\nb\n");
        assert_eq!(fitting("日本日\nb\nc\n", 3, 4), "日本日\nb\n");
        assert_eq!(
            fitting("wrapped\nb\n", 0, 4),
            "wrapped\n",
            "one line at least"
        );
    }

    #[test]
    fn a_line_is_cut_to_the_columns_of_the_terminal() {
        assert_eq!(
            (cut("abc", 3), cut("abc", 2), cut("", 0)),
            ("abc", "ab", "")
        );
        assert_eq!(
            (cut("日本", 3), cut("日本", 4), cut("日", 1)),
            ("日", "日本", "")
        );
    }
}
