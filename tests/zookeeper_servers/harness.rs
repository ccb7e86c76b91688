//! The tests' own means: faults of servers and links, and TLS.

use std::time::Duration;
use support::zookeeper::Role;
use support::{eventually, needs_zookeeper};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn the_shared_server_serves() {
    let shared = needs_zookeeper!().shared();
    assert_eq!(shared[0].role(), Some(Role::Standalone));
    assert!(shared.url().ends_with(shared.root()), "{}", shared.url());
    assert_eq!(
        shared.urls("/a"),
        [format!("zk://127.0.0.1:{}/a", shared[0].port())]
    );
}

#[test]
fn three_servers_agree_and_survive_their_leader() {
    let mut ensemble = needs_zookeeper!().start(3);
    let leader = ensemble.leader();
    assert_eq!(ensemble.followers().len(), 2);
    assert_eq!(ensemble.url("/a").matches(',').count(), 2);
    ensemble[leader].kill();
    assert_ne!(ensemble.leader(), leader);
    ensemble[leader].restart();
    ensemble[leader].await_serving();
    assert_eq!(ensemble[leader].role(), Some(Role::Follower));
    ensemble[leader].pause();
    assert_eq!(ensemble[leader].role(), None);
    ensemble[leader].resume();
    ensemble.await_serving();
}

#[test]
fn a_leader_whose_links_are_cut_serves_again_when_they_are_healed() {
    let mut ensemble = needs_zookeeper!()
        .ensemble(3)
        .with_links()
        .sync_limit(4)
        .start();
    let leader = ensemble.leader();
    ensemble.links().cut_off(leader);
    assert!(eventually(LIMIT, || ensemble[leader].role().is_none()));
    assert_ne!(ensemble.leader(), leader);
    ensemble.links().heal();
    ensemble.await_serving();
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_begins_over_tls() {
    use redlatch_zookeeper::message::{ConnectReply, ConnectRequest};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, StreamOwned};
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use support::certificates::Authority;
    use support::tls_client;

    let ensemble = needs_zookeeper!().ensemble(1).with_tls().start();
    let config = tls_client::config(&Authority::trusted_file());
    let name = ServerName::try_from("localhost").unwrap();
    let tls = ClientConnection::new(config, name).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", ensemble[0].secure_port())).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut stream = StreamOwned::new(tls, stream);
    let mut bytes = Vec::new();
    ConnectRequest::new(4_000, 0).encode(&mut bytes);
    stream.write_all(&bytes).unwrap();
    // Its length and 37 bytes.
    let mut reply = [0; 41];
    stream.read_exact(&mut reply).unwrap();
    let reply = ConnectReply::decode(&reply[4..]).unwrap();
    assert!(reply.timeout_ms == 4_000 && reply.session != 0, "{reply:?}");
}
