//! One session, in literal bytes and times: conversations, which are in `scenarios`, and properties
//! of it.

#[cfg(feature = "diagnostics")]
mod examining;
mod limits;
mod other_protocols;
mod pauses;
#[cfg(feature = "groups")]
mod reign;
mod scenario;
#[cfg(feature = "groups")]
mod search;
mod stale_connections;
mod stray;

#[test]
fn greeting() {
    scenario::play_file("greeting");
}

#[test]
fn replies() {
    scenario::play_file("replies");
}

#[test]
fn stray() {
    scenario::play_file("stray");
}

#[test]
fn scripts() {
    scenario::play_file("scripts");
}

#[test]
fn pending_releases() {
    scenario::play_file("pending_releases");
}

#[test]
fn handoff() {
    scenario::play_file("handoff");
}

#[test]
fn silence() {
    scenario::play_file("silence");
}

#[test]
fn quarantine() {
    scenario::play_file("quarantine");
}

#[test]
fn shares() {
    scenario::play_file("shares");
}

#[test]
fn stale_connections() {
    scenario::play_file("stale_connections");
}

#[test]
fn queue() {
    scenario::play_file("queue");
}

#[test]
fn no_queue() {
    scenario::play_file("no_queue");
}
