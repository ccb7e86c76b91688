//! The time of the servers, which counts from a while before the process began.

use redlatch_protocol::time::Time;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

/// Ten years: what began long before, such as a server, has a time as well.
const FIRST: Time = Time::from_millis(10 * 365 * 24 * 3600 * 1000);

pub(crate) fn now() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    FIRST.after(START.get_or_init(Instant::now).elapsed())
}

/// Microseconds since 1970.
pub(crate) fn wall_micros() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
