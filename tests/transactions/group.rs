//! Servers that keep registers.

use redlatch::LockClient;
use support::cli;
use support::locks::with_long_timeout;
use support::redis::Server;
use support::servers::Servers;

pub(crate) fn client(servers: &[Server]) -> LockClient {
    with_long_timeout(servers.iter().map(Server::url)).build().unwrap()
}

/// Servers in memory that are a group, and a client of them.
pub(crate) fn formed(count: usize) -> (Servers, LockClient) {
    let servers = Servers::start(count);
    let client = client(&servers);
    client.form_registers(true).unwrap();
    (servers, client)
}

/// How many keys of registers a server has, beside its mark and its floor.
pub(crate) fn keys(server: &Server) -> usize {
    let cli::Value::Array(keys) = server.command(&["KEYS", "*"]) else { panic!("no list") };
    let is_counted = |key: &cli::Value| {
        let key = key.text();
        key.ends_with(":redlatch:register") || key.ends_with(":redlatch:promise")
    };
    keys.iter().filter(|key| is_counted(key)).count()
}
