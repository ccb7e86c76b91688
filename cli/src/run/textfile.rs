//! The metrics of `--metrics-textfile`, for the textfile collector of Prometheus' node_exporter.

use super::state_file::{self, StateFile};
use crate::acquire::AcquireArguments;
use crate::exit::Failure;
use crate::inspect::shown;
use crate::{duration, output};
use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const OPTION: &str = "--metrics-textfile";

const LAST_SUCCESS: &str = "redlatch_run_last_success_timestamp_seconds";

/// What is known of a run. Nothing that fails here ends it.
pub(crate) struct Textfile {
    path: Option<PathBuf>,
    /// As long as it is kept, a run that does not get the lock leaves the file alone.
    written: Option<StateFile>,
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
    /// A failure if something else than a file is there.
    pub(crate) fn new(path: Option<&Path>, arguments: &AcquireArguments) -> Result<Self, Failure> {
        path.map_or(Ok(()), |path| state_file::refuse_special(OPTION, path))?;
        Ok(Self {
            path: path.map(Path::to_owned),
            written: None,
            locks: arguments
                .names()
                .map(|name| (label(name.as_bytes()), None))
                .collect(),
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
        self.held = self
            .waited
            .map(|waited| self.start.elapsed().saturating_sub(waited));
        self.is_lost = is_lost;
    }

    /// This program ends with this exit code.
    pub(crate) fn ended(mut self, code: u8) {
        self.code = Some(code);
        let has_succeeded = self.held.is_some() && !self.is_lost && code == 0;
        if let Some(now) = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .filter(|_| has_succeeded)
        {
            self.locks
                .iter_mut()
                .for_each(|(_, last)| *last = Some(duration::seconds(now)));
        }
        if let Some(text) = self.write() {
            output::note(&text);
        }
    }

    /// A warning if that fails for the first time.
    fn write(&mut self) -> Option<String> {
        let path = self.path.as_ref()?;
        if self.waited.is_none() && state_file::is_kept_by_another(path) {
            return None;
        }
        // Others may have written it since this one began.
        let before = state_file::open(path)
            .and_then(io::read_to_string)
            .unwrap_or_default();
        for (label, last) in &mut self.locks {
            let found = last_success(&before, label);
            if found > *last {
                *last = found;
            }
        }
        let error = match StateFile::replace(path, &self.text()) {
            Ok(written) => {
                self.written = Some(written);
                return None;
            }
            Err(error) => error,
        };
        let text = format!("warning: {OPTION}: {}: {error}", path.display());
        let is_first = !self.is_warned;
        self.is_warned = true;
        is_first.then_some(text)
    }

    fn text(&self) -> String {
        let elapsed = self.start.elapsed();
        let waited = self.waited.unwrap_or(elapsed);
        let held = self
            .held
            .or(self.waited.map(|waited| elapsed.saturating_sub(waited)));
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
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
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
        assert_eq!(
            (last_success(&text, "b"), last_success(&text, "c")),
            (None, None)
        );
    }
}
