//! Connections that take long, or never come about; literal IPv6 addresses; keepalive.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, NodeReport, Phase};
use redlatch::{Error, LockClient, NodeError};
use socket2::{Domain, Socket, Type};

use support::deaf_port::DeafPort;
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, can_be_acquired, with_long_timeout};
use support::proxy::{Mode, proxied};
use support::redis::Server;
use support::servers::Servers;
use support::transport::{is_tls, scheme};

/// The client's connections to this port that have a keepalive timer, and all of them.
#[cfg(target_os = "linux")]
fn probed(port: u16) -> (usize, usize) {
    let table = fs::read_to_string("/proc/self/net/tcp").expect("Linux has it");
    let peer = format!("0100007F:{port:04X}");
    // The number, the local address, the peer, the state (1 is connected), the queues, the timer.
    let lines: Vec<Vec<_>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let to_peer = |line: &&Vec<&str>| line.len() > 5 && line[2] == peer && line[3] == "01";
    let lines: Vec<_> = lines.iter().filter(to_peer).collect();
    (
        lines
            .iter()
            .filter(|line| line[5].starts_with("02:"))
            .count(),
        lines.len(),
    )
}

#[cfg(target_os = "linux")]
#[test]
fn idle_connections_are_probed_unless_that_is_turned_off() {
    use support::locks::{connected, take};
    let server = Server::start(&[]);
    let build = |builder: redlatch::Builder| connected(builder.build().unwrap());
    let settings = || with_long_timeout([server.url()]);
    let client = build(settings());
    take(&client, "probed", LONG).release().unwrap();
    assert!(eventually(LIMIT, || probed(server.client_port()) == (1, 1)));
    let _unprobed = build(settings().tcp_keepalive(None));
    assert!(eventually(LIMIT, || probed(server.client_port()) == (1, 2)));
}

#[test]
fn a_node_that_takes_several_rounds_to_connect_is_reached_and_delays_no_call() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let slow = Duration::from_millis(400);
    proxies[2].set(Mode::Delay {
        to_server: slow,
        to_client: slow,
    });
    let round = Duration::from_millis(300);
    let build = |urls: Vec<String>, timeout| {
        let builder = with_long_timeout(urls).node_timeout(round);
        builder.connect_timeout(timeout).build().unwrap()
    };
    let client = build(urls.clone(), LIMIT);
    let is_connected = |client: &LockClient| client.nodes().iter().all(|node| node.is_connected);
    // A call that waited for the slow node would take longer, each time.
    let mut times = Vec::new();
    while !is_connected(&client) {
        let start = Instant::now();
        let is_acquired = can_be_acquired(&client, "far");
        times.extend(is_acquired.then(|| start.elapsed()));
    }
    assert!(times.iter().min() < Some(&round), "{times:?}");

    // An attempt that may not take as long as the greeting never succeeds.
    let client = build(vec![urls[2].clone()], slow);
    let start = Instant::now();
    while start.elapsed() < slow * 8 {
        assert!(matches!(
            client.try_lock("far", LONG),
            Err(Error::NoQuorum(_))
        ));
    }
    assert!(!is_connected(&client));
    assert!(proxies[2].accepted() > 2, "the attempt began again");
}

#[test]
fn connecting_ends_with_its_own_time_even_within_a_long_round() {
    let deaf = DeafPort::open("127.0.0.1:0");
    let minute = Duration::from_secs(60);
    let builder =
        with_long_timeout([format!("{}://{}", scheme(), deaf.address())]).node_timeout(minute);
    let client = builder
        .connect_timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let start = Instant::now();
    match client.try_lock("deaf", LONG) {
        Err(Error::NoQuorum(error)) => {
            let silent = NodeAnswer::Failed(NodeError::TimedOut(Phase::Connecting));
            assert_eq!(error.reports()[0].answer, silent);
        }
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < minute);
}

/// An address of this machine that is valid on one of its links only, with the link's name.
fn link_local() -> Option<String> {
    // The address, the index, the length of the prefix, the scope, flags, and the link's name.
    let table = fs::read_to_string("/proc/net/if_inet6").ok()?;
    table.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let digits = fields.first().filter(|digits| digits.starts_with("fe80"))?;
        let groups: Vec<_> = (0..8)
            .map(|group| &digits[group * 4..group * 4 + 4])
            .collect();
        Some(format!("{}%{}", groups.join(":"), fields.last()?))
    })
}

#[test]
fn literal_ipv6_addresses_are_connected_to() {
    let mut hosts = Vec::new();
    if TcpListener::bind("[::1]:0").is_ok() {
        hosts.push("::1".to_owned());
    } else {
        eprintln!("not tested: this machine has no ::1");
    }
    match link_local() {
        Some(host) => hosts.push(host),
        None => eprintln!("not tested: this machine has no link-local address"),
    }
    for host in hosts {
        let server = Server::start(&["--bind", &host, "--protected-mode", "no"]);
        for written in [host.clone(), host.replace('%', "%25")] {
            let mut url = server.url().replace("127.0.0.1", &format!("[{written}]"));
            // No certificate is for an address of one link.
            url += if is_tls() {
                "?server_name=localhost"
            } else {
                ""
            };
            let client = all_nodes_client([url]);
            assert!(
                eventually(LIMIT, || can_be_acquired(&client, "ipv6")),
                "{written}"
            );
        }
    }
}

/// Ports at which nobody listens. They stay taken, so nobody else does.
fn closed_ports(count: usize) -> Vec<Socket> {
    let bound = |_| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be made");
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        socket.bind(&any.into()).expect("a port is free");
        socket
    };
    (0..count).map(bound).collect()
}

/// The URL of an ensemble with these servers.
fn ensemble_url(ports: &[Socket]) -> String {
    let address = |port: &Socket| {
        let address = port
            .local_addr()
            .expect("it is bound")
            .as_socket()
            .expect("it is TCP");
        address.to_string()
    };
    format!(
        "zk://{}/locks",
        ports.iter().map(address).collect::<Vec<_>>().join(",")
    )
}

#[test]
fn an_ensemble_at_whose_ports_nobody_listens_is_reported_at_once() {
    for count in [1, 3] {
        let ports = closed_ports(count);
        // A request may take a third of it.
        let builder = LockClient::builder().nodes([ensemble_url(&ports)]);
        let client = builder.session_timeout(LIMIT * 3).build().unwrap();
        let start = Instant::now();
        let results = [
            client.try_lock("a", LONG).map(|_| ()),
            client.request("a").shared().try_lock().map(|_| ()),
            client.request("a").try_lock_for(Duration::ZERO).map(|_| ()),
            client.inspect("a").map(|_| ()),
            client.locks("*").next().expect("an error").map(|_| ()),
        ];
        assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
        for result in results {
            let Err(Error::NoQuorum(error)) = result else {
                panic!("{result:?}")
            };
            let refused = |report: &NodeReport| report.answer.to_string().contains("refused");
            assert!(error.reports().iter().all(refused), "{error}");
        }
        // Who waits does so: a server may be started meanwhile.
        let wait = Duration::from_millis(700);
        let start = Instant::now();
        let waited = client.request("a").ttl(LONG).try_lock_for(wait);
        assert!(matches!(waited, Err(Error::NoQuorum(_))), "{waited:?}");
        assert!(
            start.elapsed() >= wait && start.elapsed() < LIMIT,
            "{:?}",
            start.elapsed()
        );
    }
}

#[test]
fn an_ensemble_that_accepts_no_connection_is_waited_for_until_the_deadline() {
    let deaf = DeafPort::open("127.0.0.1:0");
    let client = LockClient::new(format!("zk://{}/locks", deaf.address())).unwrap();
    for wait in [700, 2_300].map(Duration::from_millis) {
        let start = Instant::now();
        let waited = client.request("a").ttl(LONG).try_lock_for(wait);
        assert!(matches!(waited, Err(Error::NoQuorum(_))), "{waited:?}");
        assert!(
            start.elapsed() >= wait && start.elapsed() < LIMIT,
            "{:?}",
            start.elapsed()
        );
    }
}
