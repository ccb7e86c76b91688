//! Waiting until a register has changed.

use super::{Register, Value};
use crate::clock;
use crate::core::{Core, Redlock, draw};
use crate::engine::{QueueWait, Token};
use crate::error::RegisterError;
use crate::registers::Version;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The pauses between two looks while not all nodes tell of changes: the first one, and any.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(250);

/// How many waits in a row may end at once for nothing before looks have pauses again.
const EARLY_MAX: u32 = 3;

/// The pause between two looks while all do.
const LOOK_WATCHED: Duration = Duration::from_secs(1);

impl Register {
    /// Waits until the version is another than `seen` (`None`: until there is a value), for up to
    /// `wait`, and returns the value that there is then.
    ///
    /// The nodes tell this client of a change (`CLIENT TRACKING`, from Redis 6 on), and it looks
    /// once a second. While one of them is down, cannot tell, or may not be asked to, it looks up
    /// to four times a second.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn wait_for_change(
        &self,
        seen: Option<Version>,
        wait: Duration,
    ) -> Result<Option<Value>, RegisterError> {
        let redlock = self.client.core.register_nodes()?;
        let waiter = draw().ok_or(RegisterError::NoEntropy)?.token;
        let watching = Watching { core: &self.client.core, redlock, waiter };
        let (until, mut unwatched, mut early) = (clock::now().after(wait), LOOK_FIRST, 0);
        loop {
            let look = self.report_read(|| self.look(Some(waiter)))?;
            if self.client.core.is_known_forked() {
                // By a callback that was told of the look: the connections are the parent's.
                return Err(RegisterError::OtherProcess);
            }
            let now = clock::now();
            if look.value.as_ref().map(Value::version) != seen || now >= until {
                return Ok(look.value);
            }
            let pause = if look.is_watched { LOOK_WATCHED } else { unwatched };
            let pause = pause.min(until.since(now));
            if self.client.core.cancellation.token().is_cancelled() {
                // Waits for what the nodes tell end at once then, and this call is none of those
                // that are cancelled.
                thread::sleep(pause);
            } else {
                watching.wait(&self.keys.value, pause);
                let is_early = clock::now().since(now) < LOOK_FIRST;
                early = if is_early { early + 1 } else { 0 };
                if early > EARLY_MAX {
                    // A connection that is lost again and again, or a server that forgets at once
                    // whom to tell.
                    thread::sleep(unwatched.min(until.since(now)));
                }
            }
            unwatched = (unwatched * 2).min(LOOK_LAST);
        }
    }
}

/// What a look at a register has shown.
pub(super) struct Look {
    pub(super) value: Option<Value>,
    /// Do all nodes tell the watcher when that changes?
    pub(super) is_watched: bool,
}

/// A call that the nodes tell of changes. When it is dropped, it is forgotten.
struct Watching<'a> {
    core: &'a Core,
    redlock: &'a Redlock,
    waiter: Token,
}

impl Watching<'_> {
    /// Waits until a majority has told of a change since the last look, or for as long.
    fn wait(&self, key: &Arc<[u8]>, pause: Duration) {
        let (key, until) = (Arc::clone(key), clock::now().after(pause));
        let wait = QueueWait { key, waiter: self.waiter, watches: false, until };
        self.redlock.net.wait(wait);
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        // In a child that a callback has forked, the connections are the parent's.
        if !self.core.is_known_forked() {
            self.redlock.net.leave(self.waiter);
        }
    }
}
