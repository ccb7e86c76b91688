//! Servers that keep registers.

use redlatch::LockClient;
use support::locks::with_long_timeout;
use support::redis::Server;
use support::servers::Servers;

pub(crate) fn client(servers: &[Server]) -> LockClient {
    with_long_timeout(servers.iter().map(Server::url))
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
