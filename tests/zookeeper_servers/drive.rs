//! Clients of one thread have turns until something has happened.

use crate::client::Client;
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take, on a very busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Gives the clients turns until the condition holds. Panics with `what` after a generous limit.
#[track_caller]
pub(crate) fn drive(
    clients: &mut [&mut Client],
    what: &str,
    mut condition: impl FnMut(&mut [&mut Client]) -> bool,
) {
    let start = Instant::now();
    while !condition(clients) {
        assert!(
            start.elapsed() < LIMIT,
            "{what} has not come after {LIMIT:?}"
        );
        let turns: Vec<bool> = clients.iter_mut().map(|client| client.turn()).collect();
        if !turns.contains(&true) {
            thread::sleep(Duration::from_micros(500));
        }
    }
}
