//! Registers on real servers.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

mod attacks;
mod changes;
mod deleting;
mod events;
mod history;
mod members;
mod repair;
mod replace;
mod rights;
mod rounds;
mod scripts;
mod status;
mod waiting;

use std::time::Duration;

use redlatch::LockClient;
use redlatch::register::{Register, Value, Version};
use support::cli;
use support::locks::with_long_timeout;
use support::redis::Server;
use support::servers::Servers;

pub(crate) fn client(servers: &[Server]) -> LockClient {
    with_long_timeout(servers.iter().map(Server::url))
        .build()
        .unwrap()
}

/// A client for a test in which many rounds wait for a node that is paused.
pub(crate) fn client_with_short_rounds(servers: &[Server]) -> LockClient {
    let builder = with_long_timeout(servers.iter().map(Server::url));
    builder
        .node_timeout(Duration::from_secs(2))
        .build()
        .unwrap()
}

/// Servers in memory that are a group, and a client of them.
pub(crate) fn formed(count: usize) -> (Servers, LockClient) {
    let servers = Servers::start(count);
    let client = client(&servers);
    client.registers().form(true).unwrap();
    (servers, client)
}

pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    value.map(|value| String::from_utf8(value.bytes().to_vec()).unwrap())
}

pub(crate) fn set(register: &Register, text: &str) -> Version {
    let changed = register.change(|_| Some(text.as_bytes().to_vec())).unwrap();
    changed.version().expect("it was not deleted")
}

#[track_caller]
pub(crate) fn read(register: &Register) -> Option<String> {
    text(register.read().unwrap().as_ref())
}

/// How many keys of registers a server has, besides its mark and its floor.
pub(crate) fn keys(server: &Server) -> usize {
    let cli::Value::Array(keys) = server.command(&["KEYS", "*"]) else {
        panic!("no list")
    };
    let key = |value: &cli::Value| value.text();
    let is_counted =
        |key: &String| key.contains(":redlatch:register:") || key.contains(":redlatch:promise:");
    keys.iter().map(key).filter(is_counted).count()
}
