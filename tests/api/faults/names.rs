//! Host names of nodes: slow lookups, failed lookups, several addresses, and changed addresses.

use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, Phase};
use redlatch::{Error, LockClient, NoQuorum, NodeError};

use support::cli::{Client, Value};
use support::deaf_port::DeafPort;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, can_be_acquired, gone, idle, report_texts, take, value,
    with_long_timeout,
};
use support::program::{end_with_parent, succeed, test_process};
use support::redis::Server;
use support::servers::Servers;
use support::shim::Shim;
use support::transport::{is_tls, scheme};

const NAMES: &str = "REDLATCH_NAMES";
const ROUND: Duration = Duration::from_millis(200);

/// Runs a test again, in a process in which names that end in ".test" resolve as [`look_up`] says.
#[track_caller]
fn with_names(test: &str) {
    let shim = Shim::names();
    fs::write(shim.orders(), "0\n").expect("the file can be written");
    succeed(test_process(test).envs(shim.environment(NAMES)));
}

/// From now on, a lookup takes `millis` milliseconds and finds these addresses.
fn look_up(millis: u64, addresses: &[&str]) {
    let orders = env::var_os(NAMES).expect("it is given");
    let lines: String = addresses
        .iter()
        .map(|address| format!("{address}\n"))
        .collect();
    fs::write(orders, format!("{millis}\n{lines}")).expect("the file can be written");
}

/// Does this process have the shim for names?
fn is_prepared() -> bool {
    let is_prepared = env::var_os(NAMES).is_some();
    if is_prepared {
        end_with_parent();
    }
    is_prepared
}

#[track_caller]
fn no_quorum(client: &LockClient) -> NoQuorum {
    match client.try_lock("named", LONG) {
        Err(Error::NoQuorum(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_slow_lookup_delays_no_call_and_uses_one_thread_per_node() {
    with_names("faults::names::as_a_client_of_a_slow_name");
}

/// Does nothing without the environment variable, as the others below.
#[test]
fn as_a_client_of_a_slow_name() {
    if !is_prepared() {
        return;
    }
    let minutes = Duration::from_secs(600);
    look_up(600_000, &["127.0.0.1"]);
    let threads = || {
        fs::read_dir("/proc/self/task")
            .expect("Linux has it")
            .count()
    };
    let servers = Servers::start(2);
    let before = threads();
    let slow = format!("{}://slow.test", scheme());
    let urls = servers.urls().into_iter().chain([slow.clone()]);
    let client = with_long_timeout(urls)
        .node_timeout(Duration::from_secs(60))
        .build()
        .unwrap();
    let start = Instant::now();
    for _ in 0..20 {
        take(&client, "named", LONG).release().unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(gone(&servers, "named"));

    let alone = with_long_timeout([slow])
        .node_timeout(ROUND)
        .build()
        .unwrap();
    for _ in 0..15 {
        let start = Instant::now();
        let error = no_quorum(&alone);
        assert!(start.elapsed() < minutes / 10);
        let waiting = NodeAnswer::Failed(NodeError::TimedOut(Phase::Resolving));
        assert_eq!(error.reports()[0].answer, waiting, "{error}");
    }
    assert!(
        threads() <= before + 2,
        "one for each of the two nodes of this name"
    );
}

#[test]
fn an_unknown_name_is_reported_and_used_once_it_resolves() {
    with_names("faults::names::as_a_client_of_an_unknown_name");
}

#[test]
fn as_a_client_of_an_unknown_name() {
    if !is_prepared() {
        return;
    }
    look_up(0, &[]);
    let server = Server::start(&[]);
    let client = all_nodes_client([server.url().replace("127.0.0.1", "node.test")]);
    for _ in 0..3 {
        let error = no_quorum(&client);
        assert!(
            report_texts(&error)[0].starts_with("name not resolved: "),
            "{error}"
        );
    }
    // First no address accepts connections, and then the last of several does.
    look_up(0, &["127.0.0.3", "127.0.0.4"]);
    let refused = || report_texts(&no_quorum(&client))[0].starts_with("no connection: ");
    assert!(eventually(LIMIT, refused));
    look_up(0, &["::1", "127.0.0.3", "127.0.0.1"]);
    assert!(eventually(LIMIT, || can_be_acquired(&client, "named")));
    assert!(gone(std::slice::from_ref(&server), "named"));
}

#[test]
fn a_name_with_a_new_address_is_resolved_again_for_the_next_connection() {
    with_names("faults::names::as_a_client_of_a_name_that_moves");
}

#[test]
fn as_a_client_of_a_name_that_moves() {
    if !is_prepared() {
        return;
    }
    look_up(0, &["127.0.0.1"]);
    let mut old = Server::start(&[]);
    let client = all_nodes_client([old.url().replace("127.0.0.1", "node.test")]);
    let guard = take(&client, "named", LONG);
    assert!(value(&old, "named").is_some());

    // The same port at another address of this machine.
    let ports = old.port_args();
    let args = ["--bind", "127.0.0.2"]
        .into_iter()
        .chain(ports.iter().map(String::as_str));
    let new = Server::start(&args.collect::<Vec<_>>());
    look_up(0, &["127.0.0.2"]);
    guard.release().unwrap();
    take(&client, "named", LONG).release().unwrap();
    assert!(
        client.nodes()[0].is_connected,
        "the open connection is still used"
    );
    old.kill();
    let moved = || {
        client
            .try_lock("moved", LONG)
            .is_ok_and(|guard| guard.is_some())
    };
    assert!(eventually(LIMIT, moved));
    let mut there = Client::over(UnixStream::connect(new.unix_socket()).unwrap());
    assert!(
        there
            .command(&["INFO", "commandstats"])
            .field("cmdstat_set")
            .is_some()
    );
    assert!(eventually(LIMIT, || there.command(&["DBSIZE"]) == Value::Integer(0)));
}

/// The connections of the clients of this server, closed.
fn disconnect(server: &Server) {
    let killed = server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    assert!(matches!(killed, Value::Integer(1..)), "{killed:?}");
    idle();
}

/// The least time that acquiring a lock took over a new connection each time.
fn least_time_to_reconnect(client: &LockClient, server: &Server) -> Duration {
    let times = (0..5).map(|_| {
        disconnect(server);
        let start = Instant::now();
        take(client, "named", LONG)
            .release()
            .expect("a majority confirms it");
        start.elapsed()
    });
    times.min().expect("there are some")
}

#[test]
fn an_address_that_does_not_answer_delays_a_connection_once_and_by_its_share_only() {
    with_names("faults::names::as_a_client_of_a_name_with_a_silent_address");
}

#[test]
fn as_a_client_of_a_name_with_a_silent_address() {
    if !is_prepared() {
        return;
    }
    let share = Duration::from_millis(250);
    let server = Server::start(&[]);
    let port = server.client_port();
    let silent = ["127.0.0.8", "127.0.0.9"];
    let _deaf = silent.map(|address| DeafPort::open(&format!("{address}:{port}")));
    look_up(0, &[silent[0], silent[1], "127.0.0.1"]);
    let url = server.url().replace("127.0.0.1", "node.test");
    let minute = Duration::from_secs(60);
    let settings = || with_long_timeout([url.clone()]).node_timeout(minute);
    let client = settings().connect_timeout(minute).build().unwrap();
    let start = Instant::now();
    take(&client, "named", LONG).release().unwrap();
    assert!(
        start.elapsed() >= share * 2 && start.elapsed() < minute,
        "{:?}",
        start.elapsed()
    );
    let again = least_time_to_reconnect(&client, &server);
    assert!(
        again < share,
        "the address that answered is tried first: {again:?}"
    );

    // Without time for 250 ms each, each gets an equal share of what there is.
    let settings = settings().node_timeout(Duration::from_secs(5));
    let client = settings
        .connect_timeout(Duration::from_millis(450))
        .build()
        .unwrap();
    assert!(eventually(LIMIT, || can_be_acquired(&client, "named")));
    // A new answer of the resolver counts, not the address that was in use.
    look_up(0, &silent);
    disconnect(&server);
    let silent = NodeAnswer::Failed(NodeError::TimedOut(Phase::Connecting));
    assert_eq!(no_quorum(&client).reports()[0].answer, silent);
}

#[test]
fn an_address_that_accepts_and_never_greets_goes_last_the_next_time() {
    with_names("faults::names::as_a_client_of_a_name_with_a_mute_address");
}

#[test]
fn as_a_client_of_a_name_with_a_mute_address() {
    if !is_prepared() {
        return;
    }
    let server = Server::start(&[]);
    let _mute = TcpListener::bind(("127.0.0.8", server.client_port())).unwrap();
    look_up(0, &["127.0.0.8", "127.0.0.1"]);
    let url = server.url().replace("127.0.0.1", "node.test");
    let client = with_long_timeout([url])
        .connect_timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let phase = if is_tls() {
        Phase::Securing
    } else {
        Phase::Greeting
    };
    let silent = NodeAnswer::Failed(NodeError::TimedOut(phase));
    assert_eq!(no_quorum(&client).reports()[0].answer, silent);
    assert!(eventually(LIMIT, || can_be_acquired(&client, "named")));
    assert!(least_time_to_reconnect(&client, &server) < Duration::from_secs(1));
}

#[test]
fn a_name_with_addresses_of_both_families_is_reached_by_either() {
    with_names("faults::names::as_a_client_of_a_name_with_both_families");
}

#[test]
fn as_a_client_of_a_name_with_both_families() {
    if !is_prepared() {
        return;
    }
    look_up(0, &["::1", "127.0.0.1"]);
    let mut binds = vec!["127.0.0.1"];
    if TcpListener::bind("[::1]:0").is_ok() {
        binds.push("::1");
    } else {
        eprintln!("not tested over IPv6: this machine has no ::1");
    }
    for bind in binds {
        let server = Server::start(&["--bind", bind]);
        let client = all_nodes_client([server.url().replace("127.0.0.1", "node.test")]);
        assert!(eventually(LIMIT, || can_be_acquired(&client, "named")));
        assert!(TcpStream::connect((bind, server.port())).is_ok());
    }
}
