//! The four methods that acquire a lock, and the keys that the nodes then have.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockClient;
use support::cli::{Client, Value};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connections, gone, holders, pttl, take, value, with_long_timeout,
};
use support::redis::Server;
use support::servers::Servers;
use support::transport::trusting;

#[test]
fn every_node_has_the_same_token_of_twenty_bytes_for_the_ttl() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let before = Instant::now();
    let guard = take(&client, "token", LONG);
    let token = value(&servers[0], "token").unwrap();
    assert_eq!(token.len(), 20);
    for server in servers.iter() {
        assert_eq!(value(server, "token").as_deref(), Some(&token[..]));
        let left = Duration::from_millis(pttl(server, "token").try_into().unwrap());
        assert!(left <= LONG && left + before.elapsed() >= LONG - Duration::from_millis(1));
        // The reported validity is never above a node's ttl.
        assert!(guard.remaining() < left);
    }
}

#[test]
fn every_attempt_has_its_own_token() {
    let server = Server::start(&[]);
    let client = all_nodes_client([server.url()]);
    let mut tokens = HashSet::new();
    for _ in 0..50 {
        let guard = take(&client, "fresh", LONG);
        tokens.insert(value(&server, "fresh").unwrap());
        guard.release().unwrap();
    }
    assert_eq!(tokens.len(), 50);

    // Also attempts that failed: MONITOR shows the commands. In the nodes' queue there is only one.
    let hasty = with_long_timeout([server.url()])
        .queue(false)
        .build()
        .unwrap();
    server.command(&["SET", "fresh", "another's", "PX", "60000"]);
    let mut monitor = server.client();
    assert_eq!(monitor.command(&["MONITOR"]), Value::ok());
    let wait = Duration::from_millis(200);
    assert!(
        hasty
            .request("fresh")
            .ttl(LONG)
            .try_lock_for(wait)
            .unwrap()
            .is_none()
    );
    server.command(&["ECHO", "the end"]);
    let mut sets = Vec::new();
    loop {
        let line = String::from_utf8_lossy(&monitor.reply().unwrap()).into_owned();
        if line.contains("the end") {
            break;
        }
        sets.extend(
            line.split_once("\"SET\" \"fresh\" ")
                .map(|(_, args)| args.to_owned()),
        );
    }
    let distinct: HashSet<_> = sets.iter().collect();
    assert!(sets.len() > 1 && distinct.len() == sets.len(), "{sets:?}");
}

#[test]
fn any_number_of_nodes_needs_a_majority() {
    let servers = Servers::start(5);
    for count in 1..=5 {
        let nodes = &servers[..count];
        let urls: Vec<_> = nodes.iter().map(Server::url).collect();
        let client = all_nodes_client(urls);
        let name = format!("of-{count}");
        let guard = take(&client, &name, LONG);
        assert_eq!(holders(nodes, &name), count);
        assert_eq!(holders(&servers, &name), count);
        guard.release().unwrap();
        assert!(gone(nodes, &name));

        // With foreign keys on a minority, the lock is granted; with one more, it is not.
        let spare = count - (count / 2 + 1);
        for (before, node) in nodes[..=spare].iter().enumerate() {
            node.command(&["SET", &name, "another's", "PX", "60000"]);
            let guard = client.try_lock(&name, LONG).unwrap();
            assert_eq!(
                guard.is_some(),
                before < spare,
                "{} of {count} taken",
                before + 1
            );
            drop(guard);
        }
        let untouched = || holders(nodes, &name) == spare + 1;
        assert!(
            eventually(LIMIT, untouched),
            "only the client's own keys are removed"
        );
    }
}

#[test]
fn locks_made_by_hand_and_by_this_library_exclude_each_other() {
    let servers = Servers::start(5);
    let client = all_nodes_client(servers.urls());
    let set = |server: &Server| server.command(&["SET", "shared", "by-hand", "NX", "PX", "60000"]);
    for server in &servers[..3] {
        assert_eq!(set(server), Value::ok());
    }
    assert!(client.try_lock("shared", LONG).unwrap().is_none());
    // The refused attempt's keys on the other nodes are removed, and nothing else.
    assert!(eventually(LIMIT, || holders(&servers, "shared") == 3));
    for server in &servers[..3] {
        assert_eq!(server.command(&["GET", "shared"]), Value::bulk("by-hand"));
        assert_eq!(server.command(&["DEL", "shared"]), Value::Integer(1));
    }
    let guard = take(&client, "shared", LONG);
    for server in servers.iter() {
        assert_eq!(set(server), Value::Null);
    }
    guard.release().unwrap();
    assert!(gone(&servers, "shared"));
    assert_eq!(set(&servers[0]), Value::ok());
}

#[test]
fn the_key_is_in_the_database_of_the_url() {
    let servers = Servers::start(3);
    let urls = servers.urls().into_iter().map(|url| format!("{url}/7"));
    let guard = take(&all_nodes_client(urls), "db", LONG);
    for server in servers.iter() {
        assert_eq!(value(server, "db"), None);
        let mut client = server.client();
        assert_eq!(client.command(&["SELECT", "7"]), Value::ok());
        assert_eq!(client.command(&["EXISTS", "db"]), Value::Integer(1));
    }
    // Another database is another lock.
    take(&all_nodes_client(servers.urls()), "db", LONG)
        .release()
        .unwrap();
    guard.release().unwrap();
}

#[test]
fn the_client_authenticates_with_password_and_user() {
    support::needs!(Users);
    let odd = "p@ss:w/o?r#d% \u{e9}\"'";
    let encoded = "p%40ss%3Aw%2Fo%3Fr%23d%25%20%C3%A9%22%27";
    let servers = Servers::start_with(3, &["--requirepass", "secret"]);
    for server in servers.iter() {
        let rule = format!(">{odd}");
        let user = ["ACL", "SETUSER", "locker", "on", &rule, "~*", "+@all"];
        assert_eq!(server.command(&user), Value::ok());
    }
    take(&all_nodes_client(servers.urls()), "password", LONG)
        .release()
        .unwrap();
    let as_user = servers
        .iter()
        .map(|server| server.url_of(&format!("locker:{encoded}")));
    let client = all_nodes_client(as_user);
    take(&client, "user", LONG).release().unwrap();
    assert!(
        servers[0]
            .command(&["CLIENT", "LIST"])
            .text()
            .contains(" user=locker")
    );
}

#[test]
fn nodes_behind_unix_sockets_work_like_others() {
    let servers = Servers::start_with(3, &["--requirepass", "secret"]);
    let urls: Vec<_> = servers
        .iter()
        .map(|server| format!("unix://:secret@{}?db=2", server.unix_socket().display()))
        .collect();
    let client = all_nodes_client(&urls[..]);
    let guard = take(&client, "unix", LONG);
    for server in servers.iter() {
        let mut plain = server.client();
        plain.command(&["SELECT", "2"]);
        assert_eq!(plain.command(&["EXISTS", "unix"]), Value::Integer(1));
    }
    assert!(client.nodes().iter().all(|node| node.is_connected));
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn threads_and_clones_share_one_connection_to_each_node() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .client_name("one-each")
        .build()
        .unwrap();
    thread::scope(|scope| {
        for thread in 0..16 {
            let client = client.clone();
            scope.spawn(move || {
                for round in 0..10 {
                    take(&client, format!("{thread}-{round}"), LONG)
                        .release()
                        .unwrap();
                }
            });
        }
    });
    for server in servers.iter() {
        assert_eq!(connections(server, "one-each"), 1);
    }
    drop(client);
    let closed = || {
        servers
            .iter()
            .all(|server| connections(server, "one-each") == 0)
    };
    assert!(eventually(LIMIT, closed));
}

#[test]
fn connections_have_a_name_on_the_server() {
    let server = Server::start(&[]);
    let client = trusting(LockClient::builder().nodes([server.url()]))
        .build()
        .unwrap();
    assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
    assert_eq!(connections(&server, "redlatch"), 1);
}

#[test]
fn building_a_client_opens_no_connection() {
    let server = Server::start(&[]);
    let before = server
        .command(&["INFO", "stats"])
        .field("total_connections_received");
    let client = LockClient::new([server.url(), "redis://127.0.0.1:1".to_owned()]).unwrap();
    let mut plain = Client::connect(server.port()).unwrap();
    let after = plain
        .command(&["INFO", "stats"])
        .field("total_connections_received");
    let count = |text: Option<String>| text.unwrap().parse::<u64>().unwrap();
    assert_eq!(count(after), count(before) + 1);
    drop(client);
}
