//! The file of `--health-file`: there as long as the lock is held, for a probe of Kubernetes.

use super::textfile::replace;
use crate::output;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nothing that fails here ends the run: a probe finds no file then, and the program is not ready.
pub(crate) struct HealthFile {
    path: Option<PathBuf>,
    /// What it says, if it is there: until when the lock is held, in seconds since 1970.
    until: Option<u64>,
    is_warned: bool,
}

impl HealthFile {
    pub(crate) fn new(path: Option<&Path>) -> Self {
        Self { path: path.map(Path::to_owned), until: None, is_warned: false }
    }

    /// The lock is held for this long from now, and longer if it is extended.
    pub(crate) fn held(&mut self, left: Duration) {
        let Some(path) = &self.path else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Rounded down: it must not say more than is certain.
        let until = (now + left).as_secs();
        if self.until == Some(until) {
            return;
        }
        match replace(path, &format!("{until}\n")) {
            Ok(()) => self.until = Some(until),
            Err(error) => self.warn(&error.to_string()),
        }
    }

    /// The lock is about to be released, or to be lost.
    pub(crate) fn remove(&mut self) {
        let written = self.path.as_ref().filter(|_| self.until.is_some());
        let removed = written.map_or(Ok(()), fs::remove_file);
        self.until = None;
        if let Err(error) = removed {
            self.warn(&error.to_string());
        }
    }

    fn warn(&mut self, error: &str) {
        let path = self.path.as_ref().filter(|_| !self.is_warned);
        self.is_warned = true;
        if let Some(path) = path {
            let text = format!("warning: --health-file: {}: {error}", path.display());
            output::note_aside(move || text);
        }
    }
}

impl Drop for HealthFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes the file of a process that was killed, before the lock is waited for.
pub(crate) fn clear(path: Option<&Path>) {
    let _ = path.map(fs::remove_file);
}
