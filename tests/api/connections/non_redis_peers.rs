//! URLs of other programs than Redis: each is reported as such, and none makes the client panic,
//! hang or show the password.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::{NodeAnswer, OtherProtocol, Phase, ServerErrorKind};
use redlatch::{Error, LockClient, NoQuorum, NodeError};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, gone, report_texts, take, with_long_timeout};
use support::peer::Peer;
use support::redis::Server;
use support::secret::{SECRET, shown};
use support::servers::Servers;
use support::transport::{scheme, trusting};

/// The error of a client with three nodes of the same kind.
#[track_caller]
fn asked(urls: &[String; 3]) -> NoQuorum {
    let secret = |url: &String| url.replace("://", &format!("://user:{SECRET}@"));
    let builder = trusting(LockClient::builder().nodes(urls.iter().map(secret)));
    let builder = builder
        .node_timeout(Duration::from_millis(400))
        .wait_for_all(true);
    let client = builder.build().expect("the settings are good");
    let error = client
        .try_lock("peers", LONG)
        .expect_err("no node grants it");
    shown(&error);
    for status in client.nodes() {
        assert!(!status.is_connected);
        assert!(!format!("{status:?} {client:?}").contains("s3cr3t"));
    }
    match error {
        Error::NoQuorum(error) => {
            assert_eq!((error.reports().len(), error.answered()), (3, 0));
            error
        }
        other => panic!("{other:?}"),
    }
}

/// The report about the first of three peers of this kind.
#[track_caller]
fn node_error_of(start: impl Fn() -> Peer) -> NodeError {
    let peers = [start(), start(), start()];
    let error = asked(&[peers[0].url(), peers[1].url(), peers[2].url()]);
    match &error.reports()[0].answer {
        NodeAnswer::Failed(error) => error.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_programs_than_redis_are_reported_as_such() {
    let other = |start: fn() -> Peer, expected| {
        assert_eq!(node_error_of(start), NodeError::NotRedis(expected));
        assert!(NodeError::NotRedis(expected).is_permanent());
    };
    other(Peer::http, OtherProtocol::Http);
    other(Peer::ssh, OtherProtocol::Ssh);
    other(Peer::tls_alert, OtherProtocol::Tls);
    // A request without a time limit gets the error at once, too.
    let peers = [Peer::http(), Peer::ssh(), Peer::silent()];
    let client = with_long_timeout(peers.iter().map(Peer::url))
        .build()
        .unwrap();
    assert!(matches!(
        client.lock("peers", LONG),
        Err(Error::NoQuorum(_))
    ));
}

/// Sends this as soon as a client has connected, in pieces of this many bytes.
fn speaking_first(bytes: &'static [u8], pieces: usize) -> Peer {
    Peer::start(move |talk| {
        bytes.chunks(pieces).for_each(|piece| {
            talk.send(piece);
            thread::sleep(Duration::from_millis(1));
        });
        talk.stay_silent();
    })
}

#[test]
fn waiting_for_a_lock_ends_if_most_nodes_are_other_servers_than_redis() {
    const MYSQL: &[u8] = b"\x4a\0\0\0\x0a8.0.36\0\x08\0\0\0abcdefgh\0";
    const REFUSING: &[u8] = b"\x17\0\0\0\xff\x10\x04Too many connections";
    const HTTP_2: &[u8] =
        b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x80\0\x04\0\x01\0\0\0\x05\0\xff\xff\xff";
    const POSTGRES: &[u8] = b"E\0\0\0\x8cSFATAL\0VFATAL\0C0A000\0Munsupported frontend protocol";
    const BROKER: &[u8] = b"AMQP\0\0\x09\x01";
    let servers: [(&[u8], OtherProtocol); 8] = [
        (MYSQL, OtherProtocol::MySql),
        (REFUSING, OtherProtocol::MySql),
        (HTTP_2, OtherProtocol::Http2),
        (POSTGRES, OtherProtocol::Postgres),
        (BROKER, OtherProtocol::Amqp),
        (b"ERROR\r\nERROR\r\n", OtherProtocol::Memcached),
        (
            b"CLIENT_ERROR bad command line format\r\n",
            OtherProtocol::Memcached,
        ),
        (b"\x05who is there?", OtherProtocol::Unknown),
    ];
    for (bytes, protocol) in servers {
        for pieces in [1, bytes.len()] {
            let strangers = [speaking_first(bytes, pieces), Peer::answering_once(bytes)];
            let silent = Peer::silent();
            let urls = strangers.iter().chain([&silent]).map(Peer::url);
            let client = with_long_timeout(urls).build().unwrap();
            // A `lock` that waited on would not end the test.
            let waited = client.request("peers").ttl(LONG).try_lock_for(2 * LIMIT);
            let Err(Error::NoQuorum(error)) = waited else {
                panic!("{waited:?}")
            };
            let expected = NodeAnswer::Failed(NodeError::NotRedis(protocol));
            let strange = error.reports()[..2].iter().map(|report| &report.answer);
            assert!(strange.clone().all(|answer| *answer == expected), "{error}");
            assert!(
                error.to_string().contains(&format!("it speaks {protocol}")),
                "{error}"
            );
            assert!(client.lock("peers", LONG).is_err());
        }
    }
}

#[test]
fn silent_peers_and_peers_that_send_nonsense_are_reported() {
    assert_eq!(
        node_error_of(Peer::silent),
        NodeError::TimedOut(Phase::Greeting)
    );
    assert!(matches!(
        node_error_of(Peer::closing),
        NodeError::Disconnected(_)
    ));
    // The reset may arrive before the client sees that the connection is open.
    let reset = node_error_of(Peer::resetting);
    let is_reset = matches!(
        reset,
        NodeError::Disconnected(_) | NodeError::Unreachable { .. }
    );
    assert!(is_reset, "{reset:?}");
    assert_eq!(
        node_error_of(|| Peer::answering(b"\0\0\0\0")),
        NodeError::NotRedis(OtherProtocol::Unknown)
    );
    let answers: [&[u8]; 7] = [
        b"$-2\r\n",
        b"*4294967295\r\n",
        b"$18446744073709551615\r\n",
        b"+OK\r+OK\r\n",
        b":12x\r\n",
        b"%1\r\n+k\r\n:\r\n",
        &[b'*'; 100_000],
    ];
    for bytes in answers {
        let error = node_error_of(|| Peer::answering(bytes));
        assert!(matches!(error, NodeError::Protocol(_)), "{error:?}");
    }
    for bytes in [
        &b"+OK\r\n"[..],
        b":1\r\n",
        b"*0\r\n",
        b"_\r\n",
        b"$5\r\nhello\r\n",
    ] {
        let error = node_error_of(|| Peer::answering(bytes));
        assert!(matches!(error, NodeError::UnexpectedReply(_)), "{error:?}");
    }
    // A peer that quotes everything, the password too.
    let parrot = || {
        Peer::start(|conversation| {
            let received = conversation.read_some();
            conversation.send(&received);
            conversation.stay_silent();
        })
    };
    assert!(matches!(
        node_error_of(parrot),
        NodeError::UnexpectedReply(_)
    ));
    let quoting = format!("-ERR no {SECRET}, please\r\n");
    match node_error_of(|| Peer::answering(quoting.as_bytes())) {
        NodeError::Server(error) => assert_eq!(error.text, "ERR no ***, please"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_quotes_the_password_in_its_own_way_does_not_make_the_client_show_it() {
    let hexadecimal: String = SECRET
        .bytes()
        .map(|byte| format!("\\x{byte:02x}"))
        .collect();
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let quotations = [
        SECRET.to_owned(),
        SECRET.to_uppercase(),
        format!("S3cr3t{}", &SECRET[6..]),
        SECRET[..8].to_uppercase(),
        hexadecimal[..6 * 4].to_owned(),
        percent[..6 * 3].to_owned(),
        SECRET.to_uppercase().replace('-', "\\x2d"),
        hexadecimal,
        percent,
    ];
    for quotation in quotations {
        // Where the answer is long, the quotation is cut off at the end of what is shown.
        for filler in ["", &"x".repeat(230)] {
            let reply = format!("-ERR unknown command {filler} 'auth' '{quotation}'\r\n");
            let NodeError::Server(error) = node_error_of(|| Peer::answering(reply.as_bytes()))
            else {
                panic!("an error reply")
            };
            let text = error.text.to_lowercase();
            let has = |part: &str| text.contains(part);
            assert!(
                !has("s3cr") && !has("%73") && !has("x73") && text.starts_with("err"),
                "{text}"
            );
        }
    }
}

#[test]
fn an_error_about_an_unknown_auth_command_does_not_show_the_password() {
    let server = Server::start(&["--rename-command", "AUTH", "SIGN-IN"]);
    let client = all_nodes_client([server.url_of(&format!(":{SECRET}"))]);
    let error = client.lock("renamed", LONG).unwrap_err();
    let text = shown(&error);
    // The quotation marks differ, and some versions quote the arguments too.
    assert!(
        text.contains("ERR unknown command") && text.contains("AUTH"),
        "{error}"
    );
    assert!(!text.contains(SECRET), "{error}");
    let Error::NoQuorum(error) = error else {
        panic!("{error:?}")
    };
    let NodeAnswer::Failed(NodeError::Server(error)) = &error.reports()[0].answer else {
        panic!()
    };
    assert_eq!(error.kind, ServerErrorKind::UnknownCommand);
    take(&all_nodes_client([server.url()]), "renamed", LONG)
        .release()
        .unwrap();
}

#[test]
fn an_unknown_host_name_is_reported_and_delays_no_call() {
    let servers = Servers::start(2);
    let nowhere = format!("{}://no-such-host.invalid", scheme());
    let urls = servers.urls().into_iter().chain([nowhere.clone()]);
    let client = with_long_timeout(urls).build().unwrap();
    for round in 0..20 {
        take(&client, format!("named-{round}"), LONG)
            .release()
            .unwrap();
    }
    assert!(gone(&servers, "named-19"));

    let alone = all_nodes_client([nowhere]);
    let unresolved = || match alone.try_lock("named", LONG) {
        Err(Error::NoQuorum(error)) => report_texts(&error)[0].starts_with("name not resolved: "),
        other => panic!("{other:?}"),
    };
    // A resolver whose DNS servers do not answer is slow, and the result is a timeout.
    assert!(eventually(2 * LIMIT, unresolved));
}

#[test]
fn another_program_among_the_nodes_counts_as_one_node_that_is_down() {
    let servers = Servers::start(2);
    for stranger in [
        Peer::http(),
        Peer::ssh(),
        Peer::silent(),
        Peer::closing(),
        Peer::resetting(),
    ] {
        let urls = servers.urls().into_iter().chain([stranger.url()]);
        let client = with_long_timeout(urls)
            .node_timeout(Duration::from_secs(60))
            .build()
            .unwrap();
        for _ in 0..10 {
            let mut guard = take(&client, "stranger", LONG);
            guard.extend(LONG).unwrap();
            guard.release().unwrap();
        }
        assert!(gone(&servers, "stranger"));
    }
}

#[test]
fn a_peer_that_sends_without_end_does_not_delay_the_timeout() {
    let flood = Peer::start(|talk| {
        let pushes = b">1\r\n:1\r\n".repeat(16 * 1024);
        while talk.send(&pushes) {}
    });
    let silent = [Peer::silent(), Peer::silent()];
    let urls = [flood.url(), silent[0].url(), silent[1].url()];
    let timeout = Duration::from_millis(300);
    let client = trusting(LockClient::builder().nodes(urls))
        .node_timeout(timeout)
        .build()
        .unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        let error = client.try_lock("flood", LONG).unwrap_err();
        assert!(matches!(error, Error::NoQuorum(_)), "{error}");
        assert!(
            start.elapsed() < LIMIT,
            "the flood has no end, but the round has"
        );
    }
}
