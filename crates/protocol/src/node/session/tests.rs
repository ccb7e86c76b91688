//! One session, in literal bytes and times: conversations, which are in `scenarios`, and properties
//! of it.

mod examining;
mod limits;
mod notifications;
mod other_protocols;
mod quarantine;
mod scenario;
mod shares;
mod silence;
mod stale_connections;
mod stray;

#[test]
fn replies() {
    scenario::play_file("replies");
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
