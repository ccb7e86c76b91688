//! The errors that nodes report, and the status of each node.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{Error, LockClient, NoQuorum, NodeError, NodeStatus};
use support::capability::Capability;
use support::cli::{Value, encode};
use support::cluster_node::ClusterNode;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, report_texts, take, with_long_timeout,
};
use support::peer::Peer;
use support::redis::Server;
use support::server_program::ServerProgram;
use support::servers::Servers;

/// The error that a client gets for `try_lock`.
#[track_caller]
fn no_quorum(client: &LockClient) -> NoQuorum {
    match client.try_lock("lock:asked", LONG) {
        Err(Error::NoQuorum(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// The kind of the error of this one node, whose text must begin with `text`.
#[track_caller]
fn answered(url: &str, text: &str) -> ServerErrorKind {
    let error = no_quorum(&all_nodes_client([url]));
    match &error.reports()[0].answer {
        NodeAnswer::Failed(NodeError::Server(error)) if error.text.starts_with(text) => error.kind,
        other => panic!("{other:?}"),
    }
}

/// Does a request without a time limit fail, because waiting cannot fix this?
#[track_caller]
fn is_given_up(url: &str) -> bool {
    matches!(
        all_nodes_client([url]).lock("lock:asked", LONG),
        Err(Error::NoQuorum(_))
    )
}

#[test]
fn a_wrong_missing_or_unwanted_password_is_reported() {
    let server = Server::start(&["--requirepass", "secret"]);
    let wrong = server.url_of(":wr0ng-one");
    // Before Redis 6: `ERR invalid password`.
    assert_eq!(answered(&wrong, ""), ServerErrorKind::Authentication);
    assert!(is_given_up(&wrong));
    let text = no_quorum(&all_nodes_client([&wrong])).to_string();
    assert!(
        !text.contains("wr0ng-one") && !text.contains("NOAUTH"),
        "{text}"
    );
    let missing = server.url().replace(":secret@", "");
    assert_eq!(
        answered(&missing, "NOAUTH"),
        ServerErrorKind::Authentication
    );
    assert!(is_given_up(&missing));
    let open = Server::start(&[]);
    let needless = open.url_of(":secret");
    // Before Redis 6: `ERR Client sent AUTH, but no password is set`.
    assert_eq!(answered(&needless, "ERR "), ServerErrorKind::Authentication);
    let database = format!("{}/99", open.url());
    assert_eq!(answered(&database, "ERR "), ServerErrorKind::NoSuchDatabase);
    assert!(is_given_up(&database));
}

#[test]
fn a_user_without_the_needed_rights_is_reported() {
    support::needs!(Users);
    let server = Server::start(&[]);
    server.command(&[
        "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@all", "-set",
    ]);
    server.command(&[
        "ACL",
        "SETUSER",
        "elsewhere",
        "on",
        ">pw",
        "~other:*",
        "+@all",
    ]);
    for user in ["reader", "elsewhere"] {
        let url = server.url_of(&format!("{user}:pw"));
        assert_eq!(answered(&url, "NOPERM"), ServerErrorKind::NoPermission);
        assert!(is_given_up(&url));
    }
}

#[test]
fn a_node_that_cannot_write_to_its_disk_is_reported() {
    let server = Server::start(&[]);
    server.command(&["CONFIG", "SET", "save", "3600 1000000"]);
    // It cannot write its file because there is a directory of that name.
    fs::create_dir(server.directory().join("dump.rdb")).unwrap();
    let failed = || {
        server.command(&["BGSAVE"]);
        let status = server
            .command(&["INFO", "persistence"])
            .field("rdb_last_bgsave_status");
        status.as_deref() == Some("err")
    };
    assert!(eventually(LIMIT, failed));
    assert_eq!(
        answered(&server.url(), "MISCONF"),
        ServerErrorKind::WriteRefused
    );
}

#[test]
fn a_node_without_memory_still_releases_locks() {
    // The policy of Redis 2.8 removes keys that have a ttl.
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let client = all_nodes_client([server.url()]);
    let guard = take(&client, "lock:before", LONG);
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(
        answered(&server.url(), "OOM"),
        ServerErrorKind::WriteRefused
    );
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn a_node_that_becomes_a_replica_is_reported_and_works_again_as_a_master() {
    let server = Server::start(&[]);
    let client = all_nodes_client([server.url()]);
    take(&client, "lock:before", LONG).release().unwrap();
    server.command(&["SLAVEOF", "127.0.0.1", "1"]);
    assert_eq!(
        answered(&server.url(), "READONLY"),
        ServerErrorKind::Replica
    );
    let text = &report_texts(&no_quorum(&client))[0];
    assert!(text.starts_with("server error: READONLY"), "{text}");
    assert!(text.contains("redis+sentinel://"), "{text}");
    server.command(&["SLAVEOF", "NO", "ONE"]);
    assert!(eventually(LIMIT, || client
        .try_lock("lock:after", LONG)
        .is_ok_and(|it| it.is_some())));
}

#[test]
fn a_node_of_a_cluster_is_reported() {
    support::needs!(Cluster);
    let server = ClusterNode::start();
    assert_eq!(
        answered(&server.url(), "CLUSTERDOWN"),
        ServerErrorKind::Cluster
    );
    assert!(is_given_up(&server.url()));
}

#[test]
fn a_node_that_is_busy_with_a_script_is_reported() {
    let server = Server::start(&["--lua-time-limit", "20"]);
    let client = all_nodes_client([server.url()]);
    take(&client, "lock:before", LONG).release().unwrap();
    let mut hog = server.client();
    hog.send(&encode(&["EVAL", "while true do end", "0"]))
        .unwrap();
    let is_busy = || match client.try_lock("lock:asked", LONG) {
        Err(Error::NoQuorum(error)) => report_texts(&error)[0].starts_with("server error: BUSY"),
        // The script is not running yet.
        _ => false,
    };
    assert!(eventually(LIMIT, is_busy));
    // A new connection gets the error as its greeting.
    assert_eq!(answered(&server.url(), "BUSY"), ServerErrorKind::Busy);
    assert_eq!(server.command(&["SCRIPT", "KILL"]), Value::ok());
    assert!(eventually(LIMIT, || client
        .try_lock("lock:after", LONG)
        .is_ok_and(|it| it.is_some())));
}

#[test]
fn a_node_with_too_many_clients_is_reported() {
    let server = Server::start(&[]);
    let mut only = server.client();
    only.command(&["CONFIG", "SET", "maxclients", "1"]);
    for _ in 0..20 {
        let kind = answered(&server.url(), "ERR max number of clients");
        assert_eq!(kind, ServerErrorKind::TooManyClients);
    }
    let client = all_nodes_client([server.url()]);
    only.command(&["CONFIG", "SET", "maxclients", "100"]);
    assert!(client.try_lock("room", LONG).unwrap().is_some());
}

#[test]
fn a_node_that_is_loading_is_reported_and_waited_for() {
    support::needs!(Setting("loading-process-events-interval-bytes"));
    let mut args = vec![
        "--key-load-delay",
        "500",
        "--loading-process-events-interval-bytes",
        "1024",
    ];
    if Capability::Setting("enable-debug-command").is_there() {
        args.extend(["--enable-debug-command", "yes"]);
    }
    let mut server = Server::start(&args);
    server.command(&["DEBUG", "POPULATE", "4000"]);
    assert_eq!(server.command(&["SAVE"]), Value::ok());
    let client = with_long_timeout([server.url()]).build().unwrap();
    let restarting = thread::spawn(move || {
        server.restart();
        server
    });
    let is_loading = || match client.try_lock("lock:loading", LONG) {
        Err(Error::NoQuorum(error)) => report_texts(&error)[0].starts_with("server error: LOADING"),
        _ => false,
    };
    assert!(eventually(LIMIT, is_loading));
    // Waiting fixes this.
    client.lock("lock:loaded", LONG).unwrap().release().unwrap();
    drop(restarting.join().unwrap());
}

#[test]
fn errors_that_are_hard_to_provoke_are_reported_as_well() {
    let table = [
        ("MOVED 3999 10.0.0.9:6381", ServerErrorKind::Cluster, true),
        ("ASK 3999 10.0.0.9:6381", ServerErrorKind::Cluster, true),
        (
            "CROSSSLOT Keys in request don't hash",
            ServerErrorKind::Cluster,
            true,
        ),
        (
            "TRYAGAIN Multiple keys request",
            ServerErrorKind::Busy,
            false,
        ),
        (
            "MASTERDOWN Link with MASTER is down",
            ServerErrorKind::Replica,
            false,
        ),
        (
            "NOREPLICAS Not enough good replicas",
            ServerErrorKind::WriteRefused,
            false,
        ),
        (
            "UNKILLABLE Sorry the script already",
            ServerErrorKind::Busy,
            false,
        ),
        ("WHATEVER else there may be", ServerErrorKind::Other, false),
    ];
    for (text, kind, is_permanent) in table {
        let peer = Peer::start(move |conversation| {
            while let Some(command) = conversation.read_command() {
                let is_set = command[0] == b"SET";
                let text = if is_set { text } else { "ERR unknown command" };
                conversation.send(format!("-{text}\r\n").as_bytes());
            }
        });
        assert_eq!(answered(&peer.url(), text), kind);
        assert_eq!(
            is_permanent,
            no_quorum(&all_nodes_client([peer.url()]))
                .reports()
                .iter()
                .all(is_permanent_failure)
        );
    }
}

fn is_permanent_failure(report: &redlatch::error::NodeReport) -> bool {
    matches!(&report.answer, NodeAnswer::Failed(error) if error.is_permanent())
}

#[test]
fn each_node_has_its_own_report() {
    let mut servers = Servers::start_with(5, &["--maxmemory-policy", "noeviction"]);
    let client = with_long_timeout(servers.urls()).node_timeout(Duration::from_millis(500));
    let client = client.wait_for_all(true).build().unwrap();
    take(&client, "lock:before", LONG).release().unwrap();
    servers[0].kill();
    servers[1].pause();
    servers[2].command(&["CONFIG", "SET", "maxmemory", "1"]);
    servers[3].command(&["SET", "lock:asked", "another's"]);
    let error = no_quorum(&client);
    assert_eq!((error.answered(), error.needed()), (2, 3));
    let texts = report_texts(&error);
    assert!(
        texts[0].starts_with("no connection: Connection refused"),
        "{error}"
    );
    assert_eq!(texts[1], "timed out waiting for an answer");
    assert!(
        texts[2].starts_with("server error: OOM command not allowed"),
        "{error}"
    );
    assert_eq!(texts[3..], ["refused", "granted"]);
    for (report, server) in error.reports().iter().zip(servers.iter()) {
        assert_eq!(*report.url, format!("{}/0", server.url()));
        assert!(error.to_string().contains(&*report.url));
    }
    assert!(gone(&servers[4..], "lock:asked"));
}

#[test]
fn nodes_returns_the_status_of_each_node() {
    let mut servers = Servers::start_with(3, &["--requirepass", "secret"]);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    let program = ServerProgram::tested();
    let version = Some(program.version().to_owned());
    for (status, server) in client.nodes().iter().zip(servers.iter()) {
        assert_eq!(
            *status.url,
            format!("{}/0", server.url().replace(":secret@", ""))
        );
        assert!(status.is_connected && status.last_error.is_none());
        assert_eq!(status.server.as_deref(), Some(program.name()));
        assert_eq!(status.version, version);
        assert!(status.uptime.unwrap() < Duration::from_secs(600));
        assert!(status.round_trip.unwrap() < Duration::from_secs(5));
    }
    servers[1].kill();
    let is_down = |status: &NodeStatus| {
        let refused = matches!(status.last_error, Some(NodeError::Unreachable { .. }));
        !status.is_connected && status.uptime.is_none() && refused && status.version == version
    };
    assert!(eventually(LIMIT, || is_down(&client.nodes()[1])));
    assert!(client.nodes()[0].is_connected && client.nodes()[2].is_connected);
    servers[1].restart();
    let is_up = |status: &NodeStatus| status.is_connected && status.last_error.is_none();
    assert!(eventually(LIMIT, || is_up(&client.nodes()[1])));
}

#[test]
fn nodes_are_read_from_an_environment_variable() {
    const VARIABLE: &str = "REDLATCH_TEST_NODES";
    if std::env::var_os(VARIABLE).is_none() {
        // This process has threads, so its environment stays as it is: a child runs this test.
        let servers = Servers::start(3);
        let urls = servers.urls().join(" , ").replace("redis://", "valkey://");
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "nodes::status::nodes_are_read_from_an_environment_variable",
            ])
            .env(VARIABLE, urls)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    }
    let client = LockClient::builder()
        .nodes_from_env(VARIABLE)
        .build()
        .unwrap();
    assert_eq!(connected(client).nodes().len(), 3);
    // Without the restart guard: the servers have just been started.
    let builder = with_long_timeout(Vec::<String>::new()).nodes_from_env(VARIABLE);
    assert_eq!(
        take(&builder.build().unwrap(), "listed", LONG).release(),
        Ok(())
    );
}
