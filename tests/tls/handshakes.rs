//! Handshakes: versions, resumption, silence, cuts at any byte, and what must never happen in one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, Phase};
use redlatch::{Error, LockClient, NodeError};
use rustls::{HandshakeKind, ServerConfig};

use support::certificates::{Authority, Purpose};
use support::eventually;
use support::locks::{
    LIMIT, LONG, can_be_acquired, connected, holders, pause, report_texts, resume, take,
    with_long_timeout,
};
use support::peer::Peer;
use support::proxy::{Mode, Proxy};
use support::redis::Server;
use support::servers::Servers;
use support::terminator::{Terminator, server_config};

/// A client of one node.
#[track_caller]
fn client_of(url: &str) -> LockClient {
    with_long_timeout([url])
        .build()
        .expect("the settings are good")
}

/// A server in front of a terminator with these settings, and a proxy between, which can break its
/// connections.
fn resuming(server: &Server, config: Arc<ServerConfig>) -> (Terminator, Proxy) {
    let terminator = Terminator::with_config(server.port(), config);
    let proxy = Proxy::before_tls(terminator.port());
    (terminator, proxy)
}

/// Breaks the connection and waits until there is another one.
#[track_caller]
fn reconnect(client: &LockClient, proxy: &Proxy) {
    let before = proxy.accepted();
    proxy.set(Mode::Reset);
    proxy.set(Mode::Pass);
    assert!(eventually(LIMIT, || client.nodes()[0].is_connected
        && proxy.accepted() > before));
}

#[test]
fn each_version_of_tls_works() {
    let identity = Authority::trusted().issue(Purpose::Server);
    for version in ["TLSv1.2", "TLSv1.3"] {
        let settings = ["--tls-auth-clients", "no", "--tls-protocols", version];
        let server = Server::start_tls(&identity, &settings);
        let client = client_of(&server.url());
        let mut guard = take(&client, "version", LONG);
        guard.extend(LONG).expect("the node answers");
        assert_eq!(guard.release(), Ok(()));
    }
}

#[test]
fn an_older_version_of_tls_is_refused() {
    let identity = Authority::trusted().issue(Purpose::Server);
    // OpenSSL uses it only if its security level is lowered.
    let ciphers = [
        "--tls-ciphers",
        "DEFAULT:@SECLEVEL=0",
        "--tls-protocols",
        "TLSv1.1",
    ];
    let settings = [["--tls-auth-clients", "no"].as_slice(), &ciphers].concat();
    let server = Server::start_tls(&identity, &settings);
    match client_of(&server.url()).try_lock("version", LONG) {
        Err(Error::NoQuorum(error)) => {
            let text = &report_texts(&error)[0];
            assert!(
                text.starts_with("TLS: ") && text.contains("version"),
                "{text}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_reconnect_resumes_the_session() {
    let server = Server::start(&[]);
    let identity = Authority::trusted().issue(Purpose::Server);
    for versions in [&[&rustls::version::TLS12], &[&rustls::version::TLS13]] {
        let (chain, key) = identity.chain_and_key();
        let config = ServerConfig::builder_with_protocol_versions(versions);
        let config = config
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let (terminator, proxy) = resuming(&server, Arc::new(config));
        let client = connected(client_of(&proxy.url()));
        for _ in 0..5 {
            reconnect(&client, &proxy);
        }
        let kinds = terminator.handshakes();
        let resumed = kinds
            .iter()
            .filter(|kind| **kind == HandshakeKind::Resumed)
            .count();
        assert!(resumed >= 5 && resumed == kinds.len() - 1, "{kinds:?}");
        // Another client has sessions of its own.
        drop(connected(client_of(&proxy.url())));
        assert_eq!(terminator.handshakes().last(), Some(&HandshakeKind::Full));
    }
}

#[test]
fn redis_resumes_sessions_as_well() {
    let server = Server::start(&[]);
    let proxy = Proxy::before_tls(server.secure_port());
    let client = connected(client_of(&proxy.url()));
    let full = proxy.forwarded();
    reconnect(&client, &proxy);
    // Certificate and signature are missing, and the rest is about the same.
    let resumed = proxy.forwarded() - full;
    assert!(resumed + 300 < full, "{resumed} bytes after {full}");
}

#[test]
fn a_session_that_the_server_has_forgotten_costs_nothing_but_a_full_handshake() {
    let mut server = Server::start(&[]);
    let client = client_of(&server.url());
    for round in 0..5 {
        assert!(eventually(LIMIT, || can_be_acquired(
            &client,
            &format!("round-{round}")
        )));
        // With another key for its tickets.
        server.restart();
    }
    assert!(eventually(LIMIT, || can_be_acquired(&client, "after")));
}

#[test]
fn nothing_is_sent_before_the_handshake_is_over() {
    let server = Server::start(&[]);
    let identity = Authority::trusted().issue(Purpose::Server);
    // A server that would accept early data, and says so in its tickets.
    let mut config = Arc::unwrap_or_clone(server_config(&identity));
    config.max_early_data_size = 16 * 1024;
    let (terminator, proxy) = resuming(&server, Arc::new(config));
    let client = connected(client_of(&proxy.url()));
    for _ in 0..5 {
        reconnect(&client, &proxy);
        take(&client, "early", LONG)
            .release()
            .expect("the node answers");
    }
    assert!(terminator.handshakes().contains(&HandshakeKind::Resumed));
    assert!(!terminator.has_early_data());
}

/// A peer that accepts connections and never begins the handshake.
fn stalling() -> (Peer, String) {
    let peer = Peer::silent();
    let url = format!("rediss://127.0.0.1:{}", peer.port());
    (peer, url)
}

const ROUND: Duration = Duration::from_millis(300);

/// How much later than its deadline an operation may end on a busy machine.
const MARGIN: Duration = Duration::from_secs(10);

#[test]
fn a_handshake_that_stalls_ends_with_the_time_to_connect() {
    let (_peer, url) = stalling();
    let client = with_long_timeout([url])
        .node_timeout(ROUND)
        .connect_timeout(ROUND);
    let client = client.build().unwrap();
    let start = Instant::now();
    for _ in 0..3 {
        match client.try_lock("stalled", LONG) {
            Err(Error::NoQuorum(error)) => {
                let waiting = NodeAnswer::Failed(NodeError::TimedOut(Phase::Securing));
                assert_eq!(error.reports()[0].answer, waiting, "{error}");
                assert!(report_texts(&error)[0].starts_with("timed out in the TLS handshake"));
            }
            other => panic!("{other:?}"),
        }
        let took = start.elapsed();
        assert!(took >= ROUND && took < ROUND + MARGIN, "{took:?}");
    }
}

#[test]
fn a_handshake_that_stalls_at_any_byte_delays_no_majority() {
    let servers = Servers::start(3);
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::before_tls(server.secure_port()))
        .collect();
    let minute = Duration::from_secs(60);
    for limit in [0, 1, 5, 6, 100, 127, 128, 500, 900, 1100] {
        proxies[0].set(Mode::StallAfter(limit));
        let urls = proxies.iter().map(Proxy::url);
        let client = with_long_timeout(urls)
            .node_timeout(minute)
            .build()
            .unwrap();
        let start = Instant::now();
        for round in 0..3 {
            let mut guard = take(&client, format!("stalled-{limit}-{round}"), LONG);
            guard.extend(LONG).expect("a majority answers");
            assert_eq!(guard.release(), Ok(()));
        }
        assert!(start.elapsed() < minute, "{limit}");
        proxies[0].set(Mode::Reset);
    }
}

#[test]
fn servers_stopped_before_the_handshake_are_used_when_they_continue() {
    let servers = Servers::start(3);
    pause(&servers, 2);
    let client = with_long_timeout(servers.urls())
        .node_timeout(ROUND)
        .build()
        .unwrap();
    match client.try_lock("stopped", LONG) {
        Err(Error::NoQuorum(error)) => {
            let is_silent = |text: &String| text.starts_with("timed out in the TLS handshake");
            assert!(report_texts(&error)[..2].iter().all(is_silent), "{error}");
        }
        other => panic!("{other:?}"),
    }
    resume(&servers, 2);
    assert!(eventually(LIMIT, || can_be_acquired(&client, "stopped")));
    let empty = || !client.nodes().is_empty() && holders(&servers, "stopped") == 0;
    assert!(eventually(LIMIT, empty));
}

/// More bytes than a server sends until the handshake and the greeting are over.
const BEGINNING: usize = 8000;

/// How many bytes a server sends until a lock is acquired on a new connection.
#[track_caller]
fn beginning(server: &Server) -> usize {
    let proxy = Proxy::before_tls(server.secure_port());
    let client = client_of(&proxy.url());
    let guard = take(&client, "cut", LONG);
    let bytes = proxy.forwarded();
    assert!((1000..BEGINNING).contains(&bytes), "{bytes}");
    drop((guard, client));
    bytes
}

/// Cuts the first bytes of a server off at these numbers of bytes: no lock is acquired unless all
/// of them arrived, and the text says what happened.
#[track_caller]
fn check_cuts(offsets: impl Iterator<Item = usize>) {
    let server = Server::start(&[]);
    let whole = beginning(&server);
    let proxy = Proxy::before_tls(server.secure_port());
    for offset in offsets.take_while(|offset| *offset < whole) {
        let end = [Mode::CutAfter, Mode::ResetAfter][offset % 2];
        proxy.set(end(offset));
        let client = client_of(&proxy.url());
        // A name of its own: the key of a cut attempt stays, because its client is dropped.
        match client.try_lock(format!("cut-{offset}"), LONG) {
            Err(Error::NoQuorum(error)) => {
                let text = &report_texts(&error)[0];
                let words = ["connection lost: ", "no connection: ", "TLS: "];
                assert!(
                    words.iter().any(|words| text.starts_with(words)),
                    "{offset}: {text}"
                );
            }
            // The lengths of the greeting's numbers and of the tickets are not always the same.
            Ok(Some(_)) if offset + 100 > whole => {}
            other => panic!("{offset} of {whole}: {other:?}"),
        }
        proxy.set(Mode::Pass);
        drop(client);
    }
}

#[test]
fn a_handshake_cut_at_any_byte_does_no_harm() {
    check_cuts(0..1100);
}

#[test]
fn a_beginning_cut_at_any_byte_does_no_harm() {
    check_cuts((1100..BEGINNING).step_by(3));
}
