//! Servers, clients and limits of these tests.

use redlatch::LockClient;
use redlatch::register::{Register, Value};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;
use support::locks::with_long_timeout;
use support::servers::Servers;

/// What every operation returns within.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// A client whose rounds last long enough on a busy machine, and end soon where nodes are paused.
pub(crate) fn client(urls: &[String]) -> LockClient {
    with_timeout(urls, Duration::from_secs(2))
}

/// A client whose rounds last this long.
pub(crate) fn with_timeout(urls: &[String], timeout: Duration) -> LockClient {
    with_long_timeout(urls.to_vec())
        .node_timeout(timeout)
        .build()
        .unwrap()
}

/// Servers in memory that are a group.
pub(crate) fn formed(count: usize) -> (Servers, LockClient) {
    let servers = Servers::start(count);
    let former = client(&servers.urls());
    former.registers().form(true).unwrap();
    (servers, former)
}

pub(crate) fn durable() -> Servers {
    let servers = Servers::start_with(3, &DURABLE);
    client(&servers.urls()).registers().form(false).unwrap();
    servers
}

pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    value.map(|value| String::from_utf8(value.bytes().to_vec()).unwrap())
}

pub(crate) fn read(register: &Register) -> Option<String> {
    text(register.read().unwrap().as_ref())
}

pub(crate) fn set(register: &Register, text: &str) {
    register.change(|_| Some(text.as_bytes().to_vec())).unwrap();
}

/// Appends a word.
pub(crate) fn append(value: Option<&Value>, word: &str) -> Option<Vec<u8>> {
    Some((text(value).unwrap_or_default() + word).into_bytes())
}

/// The result of this work, which must not hang.
#[track_caller]
pub(crate) fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    thread::spawn(move || done.send(work()));
    match result.recv_timeout(LIMIT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(RecvTimeoutError::Disconnected) => panic!("it panicked"),
    }
}
