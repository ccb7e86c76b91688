//! What becomes of tests whose program is not on this machine.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::server_program::say;

/// This test is skipped, as this is missing: says so, with the number of the skip, past the capture
/// of output. Panics if the environment variable is 1, as in `./check`.
#[track_caller]
pub fn skip(variable: &str, missing: &str) {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let is_required = env::var_os(variable).is_some_and(|value| value == "1");
    assert!(!is_required, "{variable} is set, but {missing}");
    let count = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    say(&format!("skipped ({count}): {test}: {missing}"));
}
