//! Waiting until a register has changed: the nodes tell, and this client looks.

use super::nodes::RegisterNodes;
use super::{Register, Value};
use crate::backend::at_once;
use crate::clock;
use crate::engine::{QueueWait, Token};
use crate::entropy::draw;
use crate::error::RegisterError;
use redlatch_registers::{RegisterCommand, Version};
use std::pin::pin;
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
    /// to four times a second. Errors are those of [`read`](Self::read).
    pub fn wait_for_change(
        &self,
        seen: Option<Version>,
        wait: Duration,
    ) -> Result<Option<Value>, RegisterError> {
        let is_other = |value: Option<&Value>| value.map(Value::version) != seen;
        at_once(pin!(self.wait_until(wait, is_other)))
    }

    /// Waits for a value that is as it is wanted, for up to `wait`, and returns the one that there
    /// is then.
    pub(in crate::registers) async fn wait_until(
        &self,
        wait: Duration,
        is_wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>, RegisterError> {
        let nodes = self.nodes()?;
        let watcher = Watcher {
            nodes,
            token: draw().ok_or(RegisterError::NoEntropy)?.token,
        };
        let until = clock::now().after(wait);
        let mut unwatched = LOOK_FIRST;
        let mut early = 0;
        loop {
            let command = RegisterCommand::Read {
                watcher: Some(watcher.token),
            };
            let look = self.look(&command).await?;
            if self.client.core.is_known_forked() {
                // By a callback that was told of the look: the connections are the parent's.
                return Err(RegisterError::OtherProcess);
            }
            let now = clock::now();
            if is_wanted(look.value.as_ref()) || now >= until {
                return Ok(look.value);
            }
            let pause = if look.is_watched {
                LOOK_WATCHED
            } else {
                unwatched
            };
            let pause = pause.min(until.since(now));
            if self.client.core.cancellation.token().is_cancelled() {
                // Waits for what the nodes tell end at once then, and this call is none of those
                // that are cancelled.
                thread::sleep(pause);
            } else {
                watcher.wait(&self.keys.value, pause);
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

/// A call that the nodes tell of changes. When it is dropped, it is forgotten.
struct Watcher<'a> {
    nodes: RegisterNodes<'a>,
    token: Token,
}

impl Watcher<'_> {
    /// Waits until a majority has told of a change since the last look, or for as long.
    fn wait(&self, key: &Arc<[u8]>, pause: Duration) {
        let key = Arc::clone(key);
        let until = clock::now().after(pause);
        self.nodes.caller.quorum.wait(QueueWait {
            key,
            waiter: self.token,
            watches: false,
            until,
        });
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.nodes.caller.quorum.leave(self.token);
    }
}
