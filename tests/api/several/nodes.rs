//! Several resources at once on nodes that fail, lose data, hang, or refuse.

use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, ServerErrorKind};
use redlatch::{Error, LockClient, LockGuard, NodeError, NodeStatus};
use support::cluster_node::ClusterNode;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, gone, holders, value, with_long_timeout};
use support::servers::Servers;

/// Acquires locks that must be free.
#[track_caller]
fn take_all(client: &LockClient, resources: &[&str]) -> LockGuard {
    let taken = client.request_all(resources).ttl(LONG).try_lock();
    taken
        .expect("a majority answers")
        .expect("no other client holds any of them")
}

#[test]
fn one_node_that_is_down_killed_or_lost_its_scripts_makes_no_difference() {
    let mut servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    let ready = |client: &LockClient, count: usize| {
        let is_up = |node: &NodeStatus| node.is_connected;
        eventually(LIMIT, || {
            client.nodes().into_iter().filter(is_up).count() >= count
        })
    };
    assert!(ready(&client, 3));
    drop(take_all(&client, &["a", "b"]));
    // They forget the scripts before each of the three operations.
    let flush = |servers: &Servers| {
        servers
            .iter()
            .for_each(|server| drop(server.command(&["SCRIPT", "FLUSH"])));
    };
    flush(&servers);
    let mut both = take_all(&client, &["a", "b"]);
    flush(&servers);
    both.extend(LONG).unwrap();
    flush(&servers);
    assert_eq!(both.release(), Ok(()));
    let is_gone = || {
        // The release returned with a majority's replies. If the third reply is that the script is
        // unknown, the next call reads it and sends the source.
        let _ = client.nodes();
        holders(&servers, "a") + holders(&servers, "b") == 0
    };
    assert!(eventually(LIMIT, is_gone), "released on all of them");

    let mut both = take_all(&client, &["a", "b"]);
    servers[0].kill();
    both.extend(LONG).unwrap();
    assert_eq!(both.release(), Ok(()));
    let mut both = take_all(&client, &["a", "b"]);
    servers[0].restart();
    assert!(ready(&client, 3));
    both.extend(LONG).unwrap();
    let is_back = || {
        // A late reply is only read during a call.
        let _ = client.nodes();
        value(&servers[0], "a").is_some() && value(&servers[0], "b").is_some()
    };
    assert!(
        eventually(LIMIT, is_back),
        "restored on the node that restarted without keys"
    );
    assert_eq!(both.release(), Ok(()));
    assert!(gone(&servers, "a") && gone(&servers, "b"));
}

#[test]
fn without_a_majority_the_request_fails_and_leaves_no_key() {
    let mut servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    drop(take_all(&client, &["a", "b"]));
    assert!(gone(&servers, "a"));
    servers[0].kill();
    servers[1].kill();
    let request = client.request_all(["a", "b"]).ttl(LONG);
    let error = request.try_lock().unwrap_err();
    assert!(
        matches!(&error, Error::NoQuorum(error) if error.reports().len() == 3),
        "{error}"
    );
    assert!(gone(&servers[2..], "a") && gone(&servers[2..], "b"));
}

#[test]
fn a_node_that_resumes_late_keeps_no_key() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .node_timeout(LIMIT)
        .build()
        .unwrap();
    assert!(client.nodes().iter().all(|node| node.is_connected));
    drop(take_all(&client, &["a", "b"]));
    assert!(gone(&servers, "a") && gone(&servers, "b"));
    servers[0].pause();
    let both = take_all(&client, &["a", "b"]);
    assert_eq!(both.release(), Ok(()));
    drop(take_all(&client, &["b", "c"]));
    servers[0].resume();
    assert!(["a", "b", "c"].iter().all(|key| gone(&servers, key)));
}

#[test]
fn nodes_of_a_cluster_are_reported() {
    support::needs!(Cluster);
    let server = ClusterNode::start();
    let client = with_long_timeout([server.url()]).build().unwrap();
    let start = Instant::now();
    // It would wait without a limit, but this error is permanent.
    let error = client.request_all(["a", "b"]).lock().unwrap_err();
    assert!(start.elapsed() < LIMIT);
    let Error::NoQuorum(error) = error else {
        panic!("{error}")
    };
    let NodeAnswer::Failed(node_error) = &error.reports()[0].answer else {
        panic!("{error}")
    };
    let kind = match node_error {
        NodeError::Server(error) => error.kind,
        other => panic!("{other}"),
    };
    assert_eq!(kind, ServerErrorKind::Cluster, "{error}");
    let text = node_error.to_string();
    assert!(
        text.contains("CROSSSLOT") || text.contains("CLUSTERDOWN"),
        "{text}"
    );
    assert!(node_error.is_permanent());
}

#[test]
fn the_rights_in_the_readme_suffice_for_several_resources() {
    support::needs!(Users);
    let servers = Servers::start(3);
    let rights = "on >secret ~* +set +get +del +pexpire +evalsha +eval +info +pttl +ping";
    let mut words = vec!["ACL", "SETUSER", "app"];
    words.extend(rights.split(' '));
    servers
        .iter()
        .for_each(|server| assert_eq!(server.command(&words).text(), "OK"));
    let url = |url: String| url.replace("://", "://app:secret@");
    let client = all_nodes_client(servers.urls().into_iter().map(url));
    let mut both = client
        .request_all(["a", "b"])
        .ttl(LONG)
        .fenced()
        .lock()
        .unwrap();
    servers[0].command(&["DEL", "b"]);
    both.extend(LONG).unwrap();
    assert!(eventually(LIMIT, || value(&servers[0], "b").is_some()));
    both.extend(Duration::from_secs(1)).unwrap();
    assert_eq!(both.release(), Ok(()));
    assert!(gone(&servers, "a") && gone(&servers, "b"));

    // Missing rights to a key are reported, and the other key is not set.
    for server in &servers[..] {
        assert_eq!(
            server
                .command(&["ACL", "SETUSER", "app", "resetkeys", "~a"])
                .text(),
            "OK"
        );
    }
    let error = client.request_all(["a", "b"]).ttl(LONG).lock().unwrap_err();
    assert!(error.to_string().contains("NOPERM"), "{error}");
    assert_eq!(holders(&servers, "a"), 0);
}

#[test]
fn an_invalid_counter_is_reported_and_no_lock_is_held() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    // The longest name: the error must not be longer than a line may be.
    let long = "x".repeat(64_500);
    let odd = [
        "nan",
        "inf",
        "-1",
        "1.5",
        "",
        " 7",
        "0x10",
        "1e3",
        "9007199254740991",
    ];
    for (number, odd) in odd.into_iter().enumerate() {
        let name = if number == 0 { long.as_str() } else { "name" };
        let counter = format!("{name}:redlatch:fence");
        let request = client.request_all(["a", name]).ttl(LONG).fenced();
        // On a minority it changes nothing.
        servers[0].command(&["SET", &counter, odd]);
        let lock = request.clone().lock().unwrap();
        assert!(lock.fencing_token().is_some());
        assert_eq!(lock.release(), Ok(()));
        servers[1].command(&["SET", &counter, odd]);
        // It would wait without a limit, but this error is permanent.
        let Error::NoQuorum(error) = request.lock().unwrap_err() else {
            panic!()
        };
        let is_counter = |index: usize| match &error.reports()[index].answer {
            NodeAnswer::Failed(NodeError::Server(error)) => error.kind == ServerErrorKind::Counter,
            _ => false,
        };
        assert!(is_counter(0) && is_counter(1), "{odd:?}: {error}");
        assert!(gone(&servers, "a") && gone(&servers, name));
        // A lock without a fencing token is not affected.
        let plain = client
            .request_all(["a", name])
            .ttl(LONG)
            .try_lock()
            .unwrap();
        assert_eq!(plain.expect("it is free").release(), Ok(()));
        assert_eq!(
            value(&servers[0], &counter).as_deref(),
            Some(odd.as_bytes()),
            "left alone"
        );
        servers
            .iter()
            .for_each(|server| drop(server.command(&["DEL", &counter])));
    }
    assert!(
        client.nodes().iter().all(|node| node.is_connected),
        "no connection was lost"
    );
}
