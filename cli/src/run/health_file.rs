//! The file of `--health-file`: there as long as the lock is held, for a probe of Kubernetes.
//!
//! It belongs to the process that has written it, until that has died or the time in it has passed.
//! So neither who waits for the lock nor who comes back after a stop takes it from the holder; and
//! nobody removes what a process that was killed has left: the time in it ends that, and the next
//! holder replaces it.

use super::state_file::{self, StateFile};
use crate::exit::Failure;
use crate::output;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const OPTION: &str = "--health-file";

/// A time in 2001, in seconds since 1970.
const TIME_MIN: u64 = 1_000_000_000;

/// Nothing that fails here ends the run: a probe finds no file then, and the program is not ready.
pub(crate) struct HealthFile {
    path: Option<PathBuf>,
    /// The file, if it is there, and what it says: until when the lock is held, in seconds since
    /// 1970.
    written: Option<(StateFile, u64)>,
    is_warned: bool,
}

impl HealthFile {
    pub(crate) fn new(path: Option<&Path>) -> Self {
        Self {
            path: path.map(Path::to_owned),
            written: None,
            is_warned: false,
        }
    }

    /// The lock is held for this long from now, and longer if it is extended.
    pub(crate) fn held(&mut self, left: Duration) {
        let Some(path) = &self.path else { return };
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // Rounded down: it must not say more than is certain.
        let until = (now + left).as_secs();
        let kept = self.written.as_ref().filter(|(file, _)| file.is_at(path));
        match kept {
            Some((_, written)) if *written == until => return,
            None if time_in(path) > Some(now.as_secs()) && state_file::is_kept_by_another(path) => {
                self.written = None;
                return self.warn("another process keeps it");
            }
            _ => {}
        }
        match StateFile::replace(path, &format!("{until}\n")) {
            Ok(file) => self.written = Some((file, until)),
            Err(error) => self.warn(&error.to_string()),
        }
    }

    /// The lock is about to be released, or to be lost.
    pub(crate) fn remove(&mut self) {
        let (Some(path), Some((file, _))) = (&self.path, self.written.take()) else {
            return;
        };
        if !file.is_at(path) {
            return;
        }
        if let Err(error) = fs::remove_file(path) {
            self.warn(&error.to_string());
        }
    }

    fn warn(&mut self, error: &str) {
        let path = self.path.as_ref().filter(|_| !self.is_warned);
        self.is_warned = true;
        if let Some(path) = path {
            let text = format!("warning: {OPTION}: {}: {error}", path.display());
            output::note_aside(move || text);
        }
    }
}

impl Drop for HealthFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Refuses what this would destroy.
pub(crate) fn check(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    state_file::refuse_special(OPTION, path)?;
    match beginning(path) {
        Ok(text) if text.is_empty() || time(&text).is_some() => Ok(()),
        Ok(_) => Err(state_file::refused(
            OPTION,
            path,
            "has a text that redlatch has not written",
        )),
        // A run's own can be read by all.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(state_file::refused(
            OPTION,
            path,
            "cannot be read, so it is not a file of a run",
        )),
        // It is not there, or the warning of the first write tells what there is.
        Err(_) => Ok(()),
    }
}

/// The time in a file that a run has written.
fn time_in(path: &Path) -> Option<u64> {
    time(&beginning(path).ok()?)
}

fn time(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let time = digits.parse().ok()?;
    // The number of a process, in a file of another program, is less.
    (time >= TIME_MIN).then_some(time)
}

/// As much of a file as tells whether a run has written it.
fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    state_file::open(path)?.take(32).read_to_end(&mut text)?;
    Ok(text)
}
