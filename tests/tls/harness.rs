//! Tests of the test harness: servers with TLS, and the terminator.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ClientConfig, HandshakeKind};

use support::certificates::Authority;
use support::cli::{Value, encode};
use support::eventually;
use support::locks::LIMIT;
use support::peer::Peer;
use support::redis::Server;
use support::terminator::{Ending, Terminator};
use support::tls_client::{config, connect};
use support::transport::client_at;

fn client_config() -> Arc<ClientConfig> {
    config(&Authority::trusted_file())
}

#[test]
fn a_server_speaks_tls_beside_plain_text() {
    let mut server = Server::start(&["--requirepass", "secret"]);
    assert!(
        server.url().starts_with("rediss://:secret@127.0.0.1:"),
        "{}",
        server.url()
    );
    let mut client = connect(&client_config(), server.secure_port());
    assert_eq!(client.command(&["AUTH", "secret"]), Value::ok());
    assert_eq!(client.command(&["SET", "k", "v"]), Value::ok());
    assert_eq!(server.command(&["GET", "k"]), Value::bulk("v"));
    let url = server.url();
    server.restart();
    assert_eq!(server.url(), url);
    let mut client = client_at(&url.replace(":secret@", ""));
    assert_eq!(client.command(&["AUTH", "secret"]), Value::ok());
}

#[test]
fn the_terminator_passes_bytes_and_ends_and_counts_resumed_handshakes() {
    let server = Server::start(&[]);
    let terminator = Terminator::start(server.port());
    let config = client_config();
    for _ in 0..3 {
        let mut client = connect(&config, terminator.port());
        for size in [1, 1000, 100_000] {
            let word = "x".repeat(size);
            assert_eq!(client.command(&["ECHO", &word]), Value::bulk(&word));
        }
        assert!(eventually(LIMIT, || terminator.has_passed_replies()));
        client.send(&encode(&["QUIT"])).unwrap();
        assert_eq!(client.reply().unwrap(), b"+OK\r\n");
        assert_eq!(client.reply().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
    let kinds = terminator.handshakes();
    assert_eq!(
        kinds,
        [
            HandshakeKind::Full,
            HandshakeKind::Resumed,
            HandshakeKind::Resumed
        ]
    );
}

#[test]
fn the_terminator_ends_connections_in_both_ways_resets_and_refuses() {
    let peer = Peer::start(|talk| {
        let _ = talk.read_command();
        if talk.number() == 2 {
            talk.reset();
        }
    });
    let terminator = Terminator::start(peer.port());
    let error = || {
        let mut client = connect(&client_config(), terminator.port());
        client.try_command(&["PING"]).unwrap_err()
    };
    assert_eq!(error().to_string(), "unexpected end of file");
    terminator.set_ending(Ending::Abrupt);
    assert!(error().to_string().contains("close_notify"));
    assert_eq!(error().kind(), ErrorKind::ConnectionReset);
    terminator.refuse();
    let refused = TcpStream::connect(("127.0.0.1", terminator.port())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    terminator.accept();
    assert!(error().to_string().contains("close_notify"));
}
