//! A TLS handshake that does not end.

use super::*;
use crate::net::{LookupAuth, TlsTarget};
use crate::node::{NodeError, Phase};
use rustls::{ClientConfig, RootCertStore};

const CONNECT_TIMEOUT: Duration = Duration::from_millis(50);

/// A connection over TLS to this port.
fn over_tls(listener: &TcpListener) -> Fixture {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let tls = TlsTarget::new(Arc::new(config), "127.0.0.1");
    let port = listener.local_addr().expect("an address").port();
    let address = Address::Tcp {
        host: "127.0.0.1".to_owned(),
        port,
    };
    let mut options = SessionOptions::new("peer", 7);
    options.connect_timeout = CONNECT_TIMEOUT;
    Fixture::with(
        Endpoint {
            address,
            tls,
            auth: LookupAuth::default(),
        },
        &options,
    )
}

fn is_securing(connection: &NodeConnection) -> bool {
    connection
        .socket
        .as_ref()
        .is_some_and(|socket| socket.is_securing)
}

#[test]
fn a_silent_peer_is_given_up_although_no_thread_looked_when_its_time_was_over() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut fixture = over_tls(&listener);
    fixture.run_until(is_securing);
    assert_eq!(
        fixture.rounds.session(Node::new(0)).phase(),
        Phase::Securing
    );
    std::thread::sleep(CONNECT_TIMEOUT);
    let registry = fixture.poll.registry();
    let conversation = &mut fixture.rounds;
    let resolver = &fixture.resolver;
    fixture.connection.follow_session(&mut Io {
        conversation,
        registry,
        resolver,
    });
    fixture.rounds.tick(clock::now());
    assert!(fixture.rounds.session(Node::new(0)).is_down());
    assert_eq!(fixture.last_error(), NodeError::TimedOut(Phase::Securing));
}

#[test]
fn a_handshake_that_waits_has_no_use_for_a_writable_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut fixture = over_tls(&listener);
    fixture.run_until(is_securing);
    let socket = fixture.connection.socket.as_ref().expect("it is connected");
    assert!(socket.is_writable && !socket.stream.has_unsent() && !socket.is_readable);
    // Its event has been taken, and nothing else happens: the poll sleeps.
    fixture
        .poll
        .poll(&mut fixture.events, Some(Duration::ZERO))
        .expect("a poll");
    fixture
        .poll
        .poll(&mut fixture.events, Some(CONNECT_TIMEOUT))
        .expect("a poll");
    assert!(fixture.events.is_empty());
    assert!(!fixture.connection.is_overlooked());
}
