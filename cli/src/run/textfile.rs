//! The metrics of `--metrics-textfile`, for the textfile collector of Prometheus' node_exporter.

use super::state_file::{StateFile, refuse_special};
use crate::acquire::AcquireArguments;
use crate::exit::Failure;
use crate::inspect::shown;
use crate::{duration, output};
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const LAST_SUCCESS: &str = "redlatch_run_last_success_timestamp_seconds";

/// What is known of a run. Nothing that fails here ends it.
pub(crate) struct Textfile {
    path: Option<PathBuf>,
    /// The label of each lock, and when a command last succeeded under it, in seconds since 1970.
    locks: Vec<(String, Option<f64>)>,
    start: Instant,
    waited: Option<Duration>,
    held: Option<Duration>,
    is_lost: bool,
    code: Option<u8>,
    is_warned: bool,
}

impl Textfile {
    /// Reads when a command last succeeded from the file that is there. A failure if something
    /// else is there.
    pub(crate) fn new(path: Option<&Path>, arguments: &AcquireArguments) -> Result<Self, Failure> {
        path.map_or(Ok(()), |path| refuse_special("--metrics-textfile", path))?;
        let before = path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        let lock = |name: &std::ffi::OsStr| {
            let label = label(name.as_bytes());
            let last_success = last_success(&before, &label);
            (label, last_success)
        };
        Ok(Self {
            path: path.map(Path::to_owned),
            locks: arguments.names().map(lock).collect(),
            start: Instant::now(),
            waited: None,
            held: None,
            is_lost: false,
            code: None,
            is_warned: false,
        })
    }

    /// The lock was got.
    pub(crate) fn held(&mut self) {
        self.waited = Some(self.start.elapsed());
        if let Some(text) = self.write() {
            output::note_aside(move || text);
        }
    }

    /// The lock was released, or is lost.
    pub(crate) fn released(&mut self, is_lost: bool) {
        self.held = self.waited.map(|waited| self.start.elapsed().saturating_sub(waited));
        self.is_lost = is_lost;
    }

    /// This program ends with this exit code.
    pub(crate) fn ended(mut self, code: u8) {
        self.code = Some(code);
        let has_succeeded = self.held.is_some() && !self.is_lost && code == 0;
        if let Some(now) =
            SystemTime::now().duration_since(UNIX_EPOCH).ok().filter(|_| has_succeeded)
        {
            self.locks.iter_mut().for_each(|(_, last)| *last = Some(duration::seconds(now)));
        }
        if let Some(text) = self.write() {
            output::note(&text);
        }
    }

    /// A warning if that fails for the first time.
    fn write(&mut self) -> Option<String> {
        let path = self.path.as_ref()?;
        let error = StateFile::replace(path, &self.text()).err().filter(|_| !self.is_warned)?;
        self.is_warned = true;
        Some(format!("warning: --metrics-textfile: {}: {error}", path.display()))
    }

    fn text(&self) -> String {
        let elapsed = self.start.elapsed();
        let waited = self.waited.unwrap_or(elapsed);
        let held = self.held.or(self.waited.map(|waited| elapsed.saturating_sub(waited)));
        let is_held = self.waited.is_some() && self.code.is_none();
        let one = |value: Option<f64>| self.locks.iter().map(|_| value).collect::<Vec<_>>();
        let mut text = String::new();
        for (name, help, values) in [
            (
                LAST_SUCCESS,
                "When a command last ended with exit code 0 under the lock.",
                self.locks.iter().map(|(_, last)| *last).collect(),
            ),
            (
                "redlatch_run_held",
                "1 while the command runs under the lock.",
                one(Some(f64::from(u8::from(is_held)))),
            ),
            (
                "redlatch_run_waited_seconds",
                "How long the last run has waited for the lock.",
                one(Some(duration::seconds(waited))),
            ),
            (
                "redlatch_run_held_seconds",
                "How long the last run has held the lock.",
                one(Some(duration::seconds(held.unwrap_or_default()))),
            ),
            (
                "redlatch_run_lost",
                "1 if the last run has lost the lock.",
                one(Some(f64::from(u8::from(self.is_lost)))),
            ),
            (
                "redlatch_run_exit_code",
                "The exit code of the last run of redlatch.",
                one(self.code.map(f64::from)),
            ),
        ] {
            if values.iter().all(Option::is_none) {
                continue;
            }
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
            for ((label, _), value) in self.locks.iter().zip(values) {
                let _ = value.map(|value| writeln!(text, "{name}{{lock=\"{label}\"}} {value}"));
            }
        }
        text
    }
}

/// A name as the value of a label.
fn label(name: &[u8]) -> String {
    let text = std::str::from_utf8(name).map_or_else(|_| shown(name), str::to_owned);
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn last_success(text: &str, label: &str) -> Option<f64> {
    let start = format!("{LAST_SUCCESS}{{lock=\"{label}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&start))?;
    value.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::{label, last_success};

    #[test]
    fn labels_are_escaped_and_found_again() {
        assert_eq!(label("a \"b\"\\\n".as_bytes()), "a \\\"b\\\"\\\\\\n");
        assert_eq!(label(b"a\xff"), "a\\\\xff");
        let line = |label: &str, value: &str| {
            format!("redlatch_run_last_success_timestamp_seconds{{lock=\"{label}\"}} {value}\n")
        };
        let text = line("ab", "1") + &line("a", "1795569795.27") + &line("b", "NaN");
        assert_eq!(last_success(&text, "a"), Some(1_795_569_795.27));
        assert_eq!((last_success(&text, "b"), last_success(&text, "c")), (None, None));
    }
}
