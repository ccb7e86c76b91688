//! A client ends only its own abandoned connections on the server, never those of others.

use std::time::Duration;

use support::cli::Client;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, connections, take, without_restart_guard,
};
use support::redis::Server;
use support::relay::{Relay, reconnect, relayed, urls};
use support::servers::Servers;

/// The client abandons a connection after ten of these.
const NODE_TIMEOUT: Duration = Duration::from_millis(100);

/// A connection of another program.
struct Stranger {
    client: Client,
    id: i64,
}

impl Stranger {
    #[track_caller]
    fn of(server: &Server) -> Self {
        let mut client = server.client();
        let id = client.command(&["CLIENT", "ID"]).integer();
        Self { client, id }
    }

    /// Is it still the same connection?
    fn is_there(&mut self) -> bool {
        let id = self.client.try_command(&["CLIENT", "ID"]);
        id.is_ok_and(|id| id.integer() == self.id)
    }
}

/// Adds a connection of another program to each of the servers.
fn join(strangers: &mut Vec<Stranger>, servers: &[Server]) {
    strangers.extend(servers.iter().map(Stranger::of));
}

/// The server's ids of the connections with this name.
#[track_caller]
fn ids(server: &Server, name: &str) -> Vec<i64> {
    let list = server.command(&["CLIENT", "LIST"]).text();
    let name = format!(" name={name} ");
    let ids = list
        .lines()
        .filter(|line| line.contains(&name))
        .map(|line| {
            let id = line
                .strip_prefix("id=")
                .and_then(|line| line.split(' ').next());
            id.and_then(|id| id.parse().ok())
                .expect("each line begins with a number")
        });
    ids.collect()
}

#[test]
fn a_client_ends_only_connections_that_it_abandoned() {
    support::needs!(Resp3);
    let servers = Servers::start(3);
    let relays = relayed(&servers);
    let mut strangers = Vec::new();
    join(&mut strangers, &servers);
    let other = without_restart_guard(servers.urls())
        .client_name("other")
        .node_timeout(LIMIT)
        .build()
        .unwrap();
    let other = connected(other);
    let mut theirs = take(&other, "theirs", LONG);
    join(&mut strangers, &servers);
    let client = without_restart_guard(urls(&relays))
        .node_timeout(NODE_TIMEOUT)
        .build()
        .unwrap();
    let client = connected(client);
    join(&mut strangers, &servers);
    let others: Vec<_> = servers.iter().map(|server| ids(server, "other")).collect();
    for _ in 0..3 {
        relays.iter().for_each(Relay::hold);
        reconnect(&client, &relays);
        join(&mut strangers, &servers);
    }
    let is_alone = |server| connections(server, "redlatch") == 1;
    assert!(
        eventually(LIMIT, || servers.iter().all(is_alone)),
        "abandoned connections are ended"
    );
    assert!(strangers.iter_mut().all(Stranger::is_there));
    theirs
        .extend(LONG)
        .expect("the other client's lock is untouched");
    assert_eq!(theirs.release(), Ok(()));
    assert!(
        servers
            .iter()
            .zip(others)
            .all(|(server, before)| ids(server, "other") == before)
    );
}

/// A restarted server numbers its connections from the start again. When the client reconnects, its
/// old id belongs to another connection.
#[track_caller]
fn numbers_begin_anew(is_silent: bool) {
    let mut server = Server::start(&[]);
    let relay = Relay::start(&server);
    // The restarted server has had fewer connections than the old id.
    (0..100).for_each(|_| drop(server.client()));
    let client = without_restart_guard([relay.url()])
        .node_timeout(NODE_TIMEOUT)
        .build();
    let client = connected(client.expect("the settings are good"));
    let old = ids(&server, "redlatch")[0];
    if is_silent {
        // The client does not see that its connection was closed.
        relay.hold();
    }
    server.restart();
    let mut strangers = vec![Stranger::of(&server)];
    assert!(strangers[0].id < old, "ids start again");
    while strangers.last().is_some_and(|last| last.id < old + 5) {
        strangers.push(Stranger::of(&server));
    }
    assert!(strangers.iter().any(|stranger| stranger.id == old));
    let accepted = relay.accepted();
    if is_silent {
        reconnect(&client, &[relay]);
    } else {
        connected(client.clone());
        assert!(relay.accepted() > accepted);
    }
    assert!(strangers.iter_mut().all(Stranger::is_there));
    drop(take(&all_nodes_client([server.url()]), "after", LONG));
}

#[test]
fn after_a_restart_an_old_id_that_belongs_to_another_connection_is_not_killed() {
    support::needs!(Resp3);
    numbers_begin_anew(false);
}

#[test]
fn after_an_unseen_restart_an_old_id_that_belongs_to_another_connection_is_not_killed() {
    support::needs!(Resp3);
    numbers_begin_anew(true);
}
