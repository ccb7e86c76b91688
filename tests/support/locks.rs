//! What lock tests read from servers, and clients with long timeouts for a busy machine.

use std::thread;
use std::time::Duration;

use redlatch::{Builder, Error, LockClient, LockGuard, NoQuorum};

use super::cli::Value;
use super::eventually;
use super::redis::Server;
use super::servers::Servers;
use super::transport::trusting;

/// For events that must happen, at any speed.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A ttl longer than any test, so a missing key was removed and did not expire.
pub const LONG: Duration = Duration::from_secs(50);

/// The ttl of a lock that is to expire. On a busy machine too, no round takes as long: the lock
/// would not be granted.
pub const BRIEF: Duration = Duration::from_secs(1);

/// Lets the connections of all clients be idle for longer than the result of a poll counts as
/// current to them. What has happened on a connection by now is known to a call that begins after
/// this; of what happens at the end of a call, the next one may learn while it runs.
pub fn idle() {
    thread::sleep(Duration::from_millis(2));
}

/// The settings of a client without the restart guard: with it, every test would begin with a wait
/// of `max_ttl`, since its servers were just started. `tests/api/nodes/restart_guard.rs` tests
/// the restart guard.
pub fn without_restart_guard<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Builder {
    trusting(LockClient::builder().nodes(urls)).restart_guard(false)
}

/// The settings of a client whose rounds do not time out on a busy machine.
pub fn with_long_timeout<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Builder {
    without_restart_guard(urls).node_timeout(Duration::from_secs(5))
}

/// A client with long timeouts that waits for all nodes, not only for a majority.
#[track_caller]
pub fn all_nodes_client<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> LockClient {
    with_long_timeout(urls)
        .wait_for_all(true)
        .build()
        .expect("the settings are good")
}

/// The client, once it has a connection to every node.
#[track_caller]
pub fn connected(client: LockClient) -> LockClient {
    assert!(eventually(LIMIT, || client
        .nodes()
        .iter()
        .all(|node| node.is_connected)));
    client
}

/// Acquires a lock that must be free.
#[track_caller]
pub fn take(client: &LockClient, resource: impl AsRef<[u8]>, ttl: Duration) -> LockGuard {
    let taken = client.try_lock(resource, ttl);
    let taken = taken.unwrap_or_else(|error| panic!("the lock cannot be acquired: {error}"));
    taken.expect("no other client holds the lock")
}

/// Can the lock be acquired now? The ttl is one that every client of the tests may have: with a
/// longer one, the answer would always be no.
#[track_caller]
pub fn can_be_acquired(client: &LockClient, name: &str) -> bool {
    match client.try_lock(name, Duration::from_secs(5)) {
        Ok(guard) => guard.is_some(),
        Err(Error::Ttl(error)) => panic!("it is not asked for: {error}"),
        Err(_) => false,
    }
}

/// The value of the key.
#[track_caller]
pub fn value(server: &Server, key: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    match server.command(&[b"GET".as_slice(), key.as_ref()]) {
        Value::Bulk(bytes) => Some(bytes),
        Value::Null => None,
        other => panic!("GET answered {other:?}"),
    }
}

/// The value of the key, which a majority has and this node may get a little later.
#[track_caller]
pub fn await_value(server: &Server, key: impl AsRef<[u8]>) -> Vec<u8> {
    let key = key.as_ref();
    assert!(
        eventually(LIMIT, || value(server, key).is_some()),
        "the node has no such key"
    );
    value(server, key).expect("it does not expire meanwhile")
}

/// The milliseconds that the key has left; negative if it has no ttl or does not exist.
#[track_caller]
pub fn pttl(server: &Server, key: impl AsRef<[u8]>) -> i64 {
    server
        .command(&[b"PTTL".as_slice(), key.as_ref()])
        .integer()
}

/// How many of the servers have the key.
#[track_caller]
pub fn holders(servers: &[Server], key: impl AsRef<[u8]>) -> usize {
    servers
        .iter()
        .filter(|server| value(server, &key).is_some())
        .count()
}

/// Whether the key is gone from all servers, now or after a while.
#[track_caller]
pub fn gone(servers: &[Server], key: impl AsRef<[u8]>) -> bool {
    eventually(LIMIT, || holders(servers, &key) == 0)
}

/// How often the server has run a command, by its own count.
#[track_caller]
pub fn calls(server: &Server, command: &str) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]);
    let field = stats.field(&format!("cmdstat_{command}"));
    let calls = field
        .as_deref()
        .and_then(|field| field.split([',', '=']).nth(1));
    calls.map_or(0, |calls| calls.parse().expect("a number of calls"))
}

/// The number of connections of this name on the server.
#[track_caller]
pub fn connections(server: &Server, name: &str) -> usize {
    let list = server.command(&["CLIENT", "LIST"]).text();
    let name = format!(" name={name} ");
    list.lines().filter(|line| line.contains(&name)).count()
}

/// The report of each node, as text.
pub fn report_texts(error: &NoQuorum) -> Vec<String> {
    error
        .reports()
        .iter()
        .map(|report| report.answer.to_string())
        .collect()
}

/// Pauses the first `count` servers.
#[track_caller]
pub fn pause(servers: &Servers, count: usize) {
    servers[..count].iter().for_each(Server::pause);
}

/// Resumes the first `count` servers.
#[track_caller]
pub fn resume(servers: &Servers, count: usize) {
    servers[..count].iter().for_each(Server::resume);
}
