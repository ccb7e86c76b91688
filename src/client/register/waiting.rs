//! Waiting until a register has changed.

use super::{Register, Value};
use crate::clock;
use crate::engine::register::Version;
use crate::error::RegisterError;
use std::thread;
use std::time::Duration;

/// The pauses between two looks of a call that waits for a change: the first one, and any.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LAST: Duration = Duration::from_millis(250);

impl Register {
    /// Waits until the version is another than `seen` (`None`: until there is a value), for up to
    /// `wait`, and returns the value that there is then. Looks at the nodes now and then, at least
    /// four times a second.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn wait_for_change(
        &self,
        seen: Option<Version>,
        wait: Duration,
    ) -> Result<Option<Value>, RegisterError> {
        let (until, mut pause) = (clock::now().after(wait), LOOK_FIRST);
        loop {
            let value = self.read()?;
            let now = clock::now();
            if value.as_ref().map(Value::version) != seen || now >= until {
                return Ok(value);
            }
            thread::sleep(pause.min(until.since(now)));
            pause = (pause * 2).min(LOOK_LAST);
        }
    }
}
