//! Tests of the test harness.

mod relay;

use std::env;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use support::cli::{Client, Value, encode};
use support::eventually;
use support::peer::Peer;
use support::proxy::{Mode, Proxy};
use support::redis::Server;
use support::server_choice::candidates;
use support::servers::Servers;
use support::shim::{Shim, set_clock};

const LIMIT: Duration = Duration::from_secs(20);

/// Does a reply to PING come within 150 ms? (A later one is possible.)
fn answers_soon(port: u16) -> bool {
    let Ok(stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    stream
        .set_read_timeout(Some(Duration::from_millis(150)))
        .expect("a timeout above zero");
    Client::over(stream).try_command(&["PING"]).is_ok()
}

#[test]
fn a_server_can_be_paused_killed_restarted_and_stopped() {
    let mut server = Server::start(&[]);
    let pid = server.pid();
    assert_eq!(server.command(&["SET", "k", "v"]), Value::ok());
    assert_eq!(server.command(&["GET", "k"]), Value::bulk("v"));
    let info = server.command(&["INFO", "server"]);
    assert_eq!(
        info.field("process_id").unwrap(),
        pid.as_raw_nonzero().to_string()
    );

    server.pause();
    assert!(!answers_soon(server.port()));
    server.resume();
    assert!(eventually(LIMIT, || answers_soon(server.port())));

    let port = server.port();
    server.kill();
    let refused = Client::connect(port).err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::ConnectionRefused));
    server.restart();
    assert_eq!(
        (server.port(), server.command(&["GET", "k"])),
        (port, Value::Null)
    );
    assert_ne!(server.pid(), pid);

    server.pause();
    server.stop();
    assert!(Client::connect(port).is_err());
}

#[test]
fn servers_start_together_and_listen_on_unix_sockets_as_well() {
    let servers = Servers::start_with(3, &["--requirepass", "secret"]);
    assert_eq!((servers.len(), servers.urls().len()), (3, 3));
    for server in servers.iter() {
        assert_eq!(server.command(&["PING"]), Value::Simple("PONG".to_owned()));
        assert_eq!(
            server.url(),
            format!("redis://:secret@127.0.0.1:{}", server.port())
        );
        let stream = std::os::unix::net::UnixStream::connect(server.unix_socket()).unwrap();
        let reply = Client::over(stream).command(&["PING"]);
        assert_eq!(
            reply,
            Value::Error("NOAUTH Authentication required.".to_owned())
        );
    }
}

#[test]
#[should_panic(expected = "did not start")]
fn a_server_that_cannot_start_is_reported_with_its_log() {
    Server::start(&["--no-such-option", "1"]);
}

#[test]
fn the_proxy_forwards_delays_and_splits_bytes() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let mut client = Client::connect(proxy.port()).unwrap();
    assert_eq!(client.command(&["ECHO", "passed"]), Value::bulk("passed"));

    let delay = Duration::from_millis(30);
    proxy.set(Mode::Delay {
        to_server: delay,
        to_client: delay,
    });
    let start = Instant::now();
    assert_eq!(client.command(&["ECHO", "late"]), Value::bulk("late"));
    assert!(start.elapsed() >= 2 * delay);

    proxy.set(Mode::Bytewise);
    assert_eq!(client.command(&["ECHO", "split"]), Value::bulk("split"));
    assert_eq!(proxy.accepted(), 1);
}

#[test]
fn the_proxy_swallows_replies_but_not_commands() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let mut client = Client::connect(proxy.port()).unwrap();
    proxy.set(Mode::Swallow);
    client.send(&encode(&["SET", "k", "v"])).unwrap();
    assert!(eventually(LIMIT, || server.command(&["GET", "k"]) == Value::bulk("v")));
    // The proxy may or may not have read that reply; a new connection has no such doubt.
    proxy.set(Mode::Pass);
    let mut fresh = Client::connect(proxy.port()).unwrap();
    assert_eq!(fresh.command(&["ECHO", "x"]), Value::bulk("x"));
}

#[test]
fn the_proxy_closes_the_connection_after_the_given_byte() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    for limit in 0..=7 {
        proxy.set(Mode::CutAfter(limit));
        let mut client = Client::connect(proxy.port()).unwrap();
        client.send(&encode(&["PING"])).unwrap();
        let reply = client.reply();
        if limit == 7 {
            assert_eq!(reply.unwrap(), b"+PONG\r\n");
        } else {
            assert_eq!(reply.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        }
        assert_eq!(client.reply().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn the_proxy_resets_after_a_byte_repeats_replies_and_becomes_unreachable() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    for limit in 0..7 {
        proxy.set(Mode::ResetAfter(limit));
        let mut client = Client::connect(proxy.port()).unwrap();
        client.send(&encode(&["PING"])).unwrap();
        assert_eq!(
            client.reply().unwrap_err().kind(),
            ErrorKind::ConnectionReset,
            "{limit}"
        );
    }
    proxy.set(Mode::Twice);
    let mut client = Client::connect(proxy.port()).unwrap();
    client.send(&encode(&["PING"])).unwrap();
    assert_eq!(client.reply().unwrap(), b"+PONG\r\n");
    assert_eq!(client.reply().unwrap(), b"+PONG\r\n");

    proxy.set(Mode::Vanish);
    client.send(&encode(&["SET", "k", "v"])).unwrap();
    assert!(
        !answers_soon(proxy.port()),
        "a connection is made, but nothing is forwarded"
    );
    assert_eq!(server.command(&["GET", "k"]), Value::Null);
    proxy.set(Mode::Pass);
    assert!(eventually(LIMIT, || answers_soon(proxy.port())));
}

#[test]
fn a_server_s_clock_can_be_moved() {
    let shim = Shim::clock();
    let server = Server::start_in(&shim.environment("REDLATCH_CLOCK"), &[]);
    server.command(&["SET", "k", "v", "PX", "50000"]);
    set_clock(&shim.orders(), 49_000_000_000);
    let left = || server.command(&["PTTL", "k"]).integer();
    assert!(eventually(LIMIT, || left() <= 1_000));
    // Some servers read the clock a moment later than the command.
    let expires_at_once = || {
        set_clock(&shim.orders(), -50_500_000_000);
        server.command(&["SET", "k", "v", "PX", "50000"]);
        set_clock(&shim.orders(), 0);
        eventually(Duration::from_secs(1), || left() == -2)
    };
    assert!(eventually(LIMIT, expires_at_once));
}

#[test]
fn the_proxy_resets_and_refuses_and_recovers() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let mut client = Client::connect(proxy.port()).unwrap();
    assert_eq!(client.command(&["PING"]), Value::Simple("PONG".to_owned()));
    proxy.set(Mode::Reset);
    assert_eq!(
        client.reply().unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );

    proxy.set(Mode::Refuse);
    let refused = Client::connect(proxy.port())
        .err()
        .map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::ConnectionRefused));

    proxy.set(Mode::Pass);
    assert!(eventually(LIMIT, || answers_soon(proxy.port())));
}

#[test]
fn each_peer_behaves_as_its_name_says() {
    assert!(!answers_soon(Peer::silent().port()));
    let first_bytes = |peer: &Peer| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", peer.port())).unwrap();
        // A peer that closes at once may have done so before this is written.
        let written = std::io::Write::write_all(&mut stream, &encode(&["PING"]));
        let mut bytes = [0; 4];
        let read = written.and_then(|()| std::io::Read::read(&mut stream, &mut bytes));
        read.map(|read| bytes[..read].to_vec()).unwrap_or_default()
    };
    assert_eq!(first_bytes(&Peer::http()), b"HTTP");
    assert_eq!(first_bytes(&Peer::ssh()), b"SSH-");
    assert_eq!(first_bytes(&Peer::tls_alert()), [0x15, 3, 1, 0]);
    assert_eq!(first_bytes(&Peer::closing()), b"");
    assert_eq!(first_bytes(&Peer::resetting()), b"");

    let parrot = Peer::answering(b"+HI\r\n");
    let mut client = Client::connect(parrot.port()).unwrap();
    for _ in 0..2 {
        assert_eq!(client.command(&["PING"]), Value::Simple("HI".to_owned()));
    }
    let slow = Peer::start(|conversation| {
        while conversation.read_command().is_some() {
            conversation.trickle(b"+SLOW\r\n", Duration::from_millis(1));
        }
    });
    let mut client = Client::connect(slow.port()).unwrap();
    assert_eq!(client.command(&["PING"]), Value::Simple("SLOW".to_owned()));
    assert_eq!((parrot.accepted(), slow.accepted()), (1, 1));
}

#[test]
fn the_server_that_is_named_is_tested_and_else_one_of_the_system_or_a_fetched_one() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "redis-6.2/redis-server",
        "redis-7.0/redis-server",
        "valkey-9.0/valkey-server",
    ] {
        let program = folder.path().join(name);
        std::fs::create_dir(program.parent().expect("it has one")).expect("a folder");
        std::fs::write(program, "").expect("a file");
    }
    let folders = [folder.path().to_owned(), folder.path().join("none")];
    let found = |named: Option<&str>| -> Vec<String> {
        let programs = candidates(named.map(Into::into), &folders);
        let of_folder = |path: &PathBuf| {
            let inner = path.strip_prefix(folder.path()).unwrap_or(path);
            inner.to_string_lossy().into_owned()
        };
        programs.iter().map(of_folder).collect()
    };
    assert_eq!(found(Some("/opt/other-server")), ["/opt/other-server"]);
    let in_order = [
        "redis-server",
        "valkey-server",
        "redis-7.0/redis-server",
        "valkey-9.0/valkey-server",
        "redis-6.2/redis-server",
    ];
    assert_eq!(found(None), in_order);
}

#[test]
fn without_a_server_the_cause_is_said_once_and_the_tests_are_counted() {
    let mut program = Command::new(env::current_exe().expect("it has a path"));
    program
        .arg("harness::a_server")
        .env("REDLATCH_REDIS_SERVER", "/no/such/server");
    let output = program.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert_eq!(
        text.matches("apt-get install redis-server").count(),
        1,
        "{text}"
    );
    assert!(
        text.contains("FAILED: none of these can be run: /no/such/server"),
        "{text}"
    );
    let count = text
        .split("the ")
        .find_map(|it| it.split_once(" tests of this program"));
    assert!(
        count.and_then(|(count, _)| count.parse().ok()) > Some(300),
        "{text}"
    );
}
