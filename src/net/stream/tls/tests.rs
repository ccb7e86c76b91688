//! TLS between a socket of the client and a server in the same thread.

mod pair;

use super::*;
use crate::node::TlsErrorKind;
use pair::{Configs, Pair, passing};
use rustls::HandshakeKind;
use std::net::Shutdown;

/// More than a record, and more than is encrypted at a time.
const LARGE: usize = 5 * UNSENT_MAX / 2;

fn problem(error: &io::Error) -> &TlsError {
    error
        .get_ref()
        .and_then(|error| error.downcast_ref())
        .unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn a_short_read_drains_the_socket_in_one_call() {
    let mut pair = Configs::new().secured();
    pair.say(b"+OK\r\n");
    let mut buffer = [0; 100];
    // What comes first is for resumption, and nothing for us.
    let received = pair.read(&mut buffer).expect("it has arrived");
    assert_eq!(
        received,
        Received::Bytes {
            count: 5,
            is_drained: true
        }
    );
    assert_eq!(&buffer[..5], b"+OK\r\n");
    let error = pair.client.read(&mut buffer).expect_err("nothing is left");
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_full_buffer_leaves_decrypted_bytes_that_are_read_without_an_event() {
    let mut pair = Configs::new().secured();
    pair.say(b"+OK\r\n:12\r\n");
    let mut buffer = [0; 5];
    for expected in [b"+OK\r\n", b":12\r\n"] {
        let received = pair.read(&mut buffer).expect("it has arrived");
        assert_eq!(
            received,
            Received::Bytes {
                count: 5,
                is_drained: false
            }
        );
        assert_eq!(buffer, *expected);
        assert!(
            pair.client.has_decrypted(),
            "whether there is more is not known yet"
        );
    }
    let received = pair.client.read(&mut buffer).expect("no error");
    assert_eq!(
        received,
        Received::Bytes {
            count: 0,
            is_drained: false
        }
    );
    assert!(!pair.client.has_decrypted());
}

#[test]
fn bytes_that_come_with_the_handshake_are_read_behind_it() {
    let mut configs = Configs::new();
    configs.server.send_half_rtt_data = true;
    let mut pair = configs.connect();
    pair.server
        .writer()
        .write_all(b"+hello\r\n")
        .expect("it is buffered");
    while pair.client.is_handshaking() {
        pair.advance();
    }
    assert!(pair.client.has_decrypted());
    let mut buffer = [0; 100];
    let received = pair.client.read(&mut buffer).expect("it has arrived");
    assert!(
        matches!(received, Received::Bytes { count: 8, .. }),
        "{received:?}"
    );
}

#[test]
fn a_handshake_in_single_bytes_succeeds() {
    let mut pair = Configs::new().connect();
    while pair.client.is_handshaking() {
        passing(pair.client.flush());
        while passing(pair.server.read_tls(&mut pair.peer).map(drop)) {
            pair.server
                .process_new_packets()
                .expect("the client speaks TLS");
        }
        let mut bytes = Vec::new();
        while pair.server.wants_write() {
            pair.server
                .write_tls(&mut bytes)
                .expect("a vector takes all");
        }
        for byte in bytes.chunks(1) {
            pair.peer
                .write_all(byte)
                .expect("it fits into the socket buffer");
            while pair.client.is_handshaking() && !pair.client.receive().is_ok_and(|_| true) {}
        }
    }
    pair.advance();
    pair.say(b":1\r\n");
    assert!(pair.read(&mut [0; 100]).is_ok());
}

#[test]
fn a_record_without_bytes_is_no_end() {
    let mut pair = Configs::new().secured();
    // The first messages of the server, which are for resumption.
    pair.say(b"x");
    pair.read(&mut [0; 10]).expect("a byte");
    pair.server.refresh_traffic_keys().expect("version 1.3");
    pair.serve();
    let received = loop {
        match pair.client.read(&mut [0; 10]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => break other.expect("no error"),
        }
    };
    assert_eq!(
        received,
        Received::Bytes {
            count: 0,
            is_drained: true
        }
    );
    // New keys are answered by new keys, before the next bytes.
    pair.client.write(b"PING\r\n").expect("the socket takes it");
    pair.say(b":1\r\n");
    let received = pair.read(&mut [0; 10]).expect("with the new keys");
    assert_eq!(
        received,
        Received::Bytes {
            count: 4,
            is_drained: true
        }
    );
}

#[test]
fn what_the_socket_does_not_take_stays_bounded_and_is_sent_later() {
    let mut pair = Configs::new().secured();
    let bytes = vec![b'x'; LARGE];
    let mut sent = 0;
    let blocked = loop {
        match pair.client.write(&bytes) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
    };
    assert_eq!(blocked.kind(), ErrorKind::WouldBlock);
    assert!(pair.client.has_unsent());
    let mut received = 0;
    let mut buffer = vec![0; LARGE];
    while received < sent {
        passing(pair.client.flush());
        passing(pair.server.read_tls(&mut pair.peer).map(drop));
        pair.server
            .process_new_packets()
            .expect("whole records, in order");
        received += pair.server.reader().read(&mut buffer).unwrap_or(0);
    }
    assert!(!pair.client.has_unsent());
    assert_eq!(received, sent);
    assert_eq!(pair.client.write(b"").expect("nothing to do"), 0);
}

#[test]
fn large_replies_are_read_in_order_to_their_last_byte() {
    let mut pair = Configs::new().secured();
    pair.server.set_buffer_limit(None);
    let bytes: Vec<u8> = (0..LARGE).map(|index| (index / 1000) as u8).collect();
    pair.server
        .writer()
        .write_all(&bytes)
        .expect("it is buffered");
    let mut buffer = vec![0; 16 * 1024];
    let mut received = Vec::new();
    while received.len() < bytes.len() {
        pair.serve();
        if let Ok(Received::Bytes { count, .. }) = pair.client.read(&mut buffer) {
            received.extend_from_slice(&buffer[..count]);
        }
    }
    assert_eq!(received, bytes);
}

#[test]
fn an_end_with_a_notice_is_told_from_one_without() {
    let configs = Configs::new();
    let mut pair = configs.secured();
    pair.server
        .writer()
        .write_all(b"-ERR bye\r\n")
        .expect("it is buffered");
    pair.server.send_close_notify();
    pair.serve();
    let mut buffer = [0; 100];
    let last = pair.read(&mut buffer).expect("the bytes before the end");
    assert!(
        matches!(
            last,
            Received::Bytes {
                count: 10,
                is_drained: false
            }
        ),
        "{last:?}"
    );
    assert_eq!(
        pair.read(&mut buffer).expect("an end in order"),
        Received::End
    );

    let mut pair = configs.secured();
    pair.say(b"-ERR bye\r\n");
    pair.peer.shutdown(Shutdown::Write).expect("a socket");
    pair.read(&mut buffer).expect("the bytes before the end");
    let error = pair.read(&mut buffer).expect_err("an end without a notice");
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert!(error.to_string().contains("close_notify"), "{error}");
}

#[test]
fn bytes_before_a_record_that_cannot_be_decrypted_are_read_first() {
    let mut pair = Configs::new().secured();
    pair.say(b"+OK\r\n");
    pair.peer
        .write_all(b"\x17\x03\x03\x00\x20not encrypted at all, 32 bytes.....")
        .expect("it fits");
    let mut buffer = [0; 100];
    let first = pair.read(&mut buffer).expect("they were decrypted");
    assert!(
        matches!(first, Received::Bytes { count: 5, .. }),
        "{first:?}"
    );
    let error = pair.read(&mut buffer).expect_err("the record");
    assert_eq!(problem(&error).kind, TlsErrorKind::Other);
}

#[test]
fn a_peer_that_does_not_speak_tls_is_recognised_however_little_it_says() {
    for (bytes, text) in [
        (&b"-ERR unknown command"[..], ""),
        (b"-DENIED Redis is running in protected mode", ""),
        (b"+", ""),
        (b"HTTP/1.1 400 Bad Request\r\n", "it speaks HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it speaks SSH"),
    ] {
        let mut pair = Configs::new().connect();
        passing(pair.client.flush());
        pair.peer.write_all(bytes).expect("it fits");
        pair.peer.shutdown(Shutdown::Write).expect("a socket");
        let error = loop {
            match pair.client.receive() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => break error,
                _ => {}
            }
        };
        assert_eq!(*problem(&error), TlsError::new(TlsErrorKind::NotTls, text));
    }
    let mut pair = Configs::new().connect();
    pair.peer.shutdown(Shutdown::Write).expect("a socket");
    while pair
        .client
        .receive()
        .is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    {}
    let error = pair.client.receive().expect_err("an end");
    assert_eq!(error.to_string(), "closed by the server");
}

#[test]
fn the_next_connection_resumes_the_session() {
    let configs = Configs::new();
    for expected in [
        HandshakeKind::Full,
        HandshakeKind::Resumed,
        HandshakeKind::Resumed,
    ] {
        let mut pair = configs.secured();
        assert_eq!(pair.server.handshake_kind(), Some(expected));
        pair.say(b"x");
        pair.read(&mut [0; 10])
            .expect("a byte, and tickets before it");
    }
}

#[test]
fn closing_sends_a_notice() {
    let Pair {
        mut client,
        mut server,
        mut peer,
        poll,
    } = Configs::new().secured();
    client.write(b"DEL key\r\n").expect("the socket takes it");
    client.close(poll.registry());
    peer.set_nonblocking(false).expect("a socket");
    let mut bytes = Vec::new();
    while bytes.is_empty() || !server.process_new_packets().expect("TLS").peer_has_closed() {
        assert_ne!(
            server.read_tls(&mut peer).expect("a record"),
            0,
            "the notice is before the end"
        );
        server.process_new_packets().expect("TLS");
        let _ = server.reader().read_to_end(&mut bytes);
    }
    assert_eq!(bytes, b"DEL key\r\n");
}
