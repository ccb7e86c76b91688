//! Replies that are cut off at any byte, by an orderly close or a reset, and replies that come
//! twice.

use std::slice;
use std::time::Duration;

use redlatch::Error;

use support::cli::{Value, encode};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, gone, holders, report_texts, take, with_long_timeout,
};
use support::peer::Peer;
use support::proxy::{Mode, Proxy};
use support::redis::Server;

/// The ways in which a reply is cut off.
const ENDS: [fn(usize) -> Mode; 2] = [Mode::CutAfter, Mode::ResetAfter];

#[test]
fn a_greeting_cut_at_any_byte_does_no_harm() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let mut plain = server.client();
    let words: [&[&str]; 3] = [
        &["HELLO", "3"],
        &["CLIENT", "SETNAME", "redlatch"],
        &["INFO", "server"],
    ];
    let replies = words.map(|words| {
        let bytes = encode(words);
        plain.try_raw(&bytes).unwrap().len()
    });
    let greeting: usize = replies.iter().sum();
    // Numbers in these replies sometimes have one more digit, so a few bytes less than all. The two
    // ways to end alternate, so each cuts every element of the greeting many times.
    for offset in 0..greeting - 16 {
        proxy.set(ENDS[offset % 2](offset));
        let client = with_long_timeout([proxy.url()]).build().unwrap();
        match client.try_lock("greeting", LONG) {
            Err(Error::NoQuorum(_)) => {}
            other => panic!("{offset} of {greeting}: {other:?}"),
        }
    }
    assert_eq!(server.command(&["DBSIZE"]), Value::Integer(0));
    proxy.set(Mode::Pass);
    take(
        &with_long_timeout([proxy.url()]).build().unwrap(),
        "greeting",
        LONG,
    )
    .release()
    .unwrap();
}

#[test]
fn a_reply_cut_at_any_byte_is_unknown_and_the_lock_is_removed() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let client = connected(with_long_timeout([proxy.url()]).build().unwrap());
    let nodes = slice::from_ref(&server);
    for (offset, end) in (0..=5).flat_map(|offset| ENDS.map(|end| (offset, end))) {
        let name = format!("cut-{:?}", end(offset));
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        proxy.set(end(offset));
        let taken = client.try_lock(&name, LONG);
        // `+OK` and a line break have five bytes; with fewer, the result is unknown.
        assert_eq!(taken.is_ok(), offset == 5, "{offset}: {taken:?}");
        assert_eq!(
            holders(nodes, &name),
            1,
            "the key was set, whatever reply arrived"
        );
        if let Err(Error::NoQuorum(error)) = &taken {
            assert!(
                report_texts(error)[0].starts_with("connection lost"),
                "{error}"
            );
        }
        // A whole reply is returned before the end of the stream arrives, so the removal of a lock
        // may still be written. Without one the connection is lost, and the removal stays pending.
        let is_lost = taken.is_err();
        drop(taken);
        if is_lost {
            assert_eq!(holders(nodes, &name), 1, "{offset}");
        }
        proxy.set(Mode::Pass);
        let paid = || client.nodes()[0].is_connected && holders(nodes, &name) == 0;
        assert!(eventually(LIMIT, paid), "{offset}");
    }
}

/// More bytes than any reply of a script has here.
const LONGEST: usize = 20;

#[test]
fn an_extension_or_release_cut_at_any_byte_is_unknown() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let client = connected(with_long_timeout([proxy.url()]).build().unwrap());
    // A script's reply contains a number with as many digits as all others of this client.
    let mut whole = LONGEST;
    for (offset, end) in (0..=LONGEST)
        .rev()
        .flat_map(|offset| ENDS.map(|end| (offset, end)))
    {
        let name = format!("cut-{:?}", end(offset));
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        let mut guard = take(&client, &name, Duration::from_secs(25));
        let before = guard.remaining();
        proxy.set(end(offset));
        let extended = guard.extend(LONG);
        if extended.is_ok() {
            assert!(
                offset + 1 >= whole,
                "{offset} bytes are enough, and {whole} were not"
            );
            whole = offset;
        }
        assert_eq!(
            guard.remaining() > before,
            offset == whole,
            "without a reply, it does not count"
        );
        assert!(guard.ensure_held().is_ok());
        proxy.set(Mode::Pass);
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        proxy.set(end(offset));
        match (guard.release(), offset) {
            (Ok(()), _) if offset == whole => {}
            (Err(Error::NoQuorum(_)), _) if offset < whole => {}
            (other, _) => panic!("{offset}: {other:?}"),
        }
        proxy.set(Mode::Pass);
        assert!(gone(slice::from_ref(&server), &name));
    }
    assert!(
        (4..LONGEST).contains(&whole),
        "a whole answer has {whole} bytes"
    );
}

#[test]
fn a_reply_that_comes_twice_counts_once() {
    let server = Server::start(&[]);
    let proxy = Proxy::start(server.port());
    let client = all_nodes_client([proxy.url()]);
    let other = all_nodes_client([server.url()]);
    let mut held = take(&client, "twice", LONG);
    for round in 0..10 {
        assert!(eventually(LIMIT, || client.nodes()[0].is_connected));
        let name = format!("twice-{round}");
        let connections = proxy.accepted();
        proxy.set(Mode::Twice);
        match round % 2 {
            0 => drop(client.try_lock(&name, LONG)),
            _ => drop(held.extend(LONG)),
        }
        proxy.set(Mode::Pass);
        // The second is the reply to no command: this stream is not trusted any more.
        let is_new = || client.nodes()[0].is_connected && proxy.accepted() > connections;
        assert!(eventually(LIMIT, is_new), "{round}");
        // So it is not taken for the grant of a lock that another client holds.
        let theirs = take(&other, "theirs", LONG);
        assert!(matches!(client.try_lock("theirs", LONG), Ok(None)));
        theirs.release().unwrap();
        assert!(gone(slice::from_ref(&server), &name));
    }
    assert_eq!(held.release(), Ok(()));
}

/// A node that always says yes, and always sends another message first.
fn talkative(words: &[Vec<u8>]) -> Vec<u8> {
    let plain = match words[0].as_slice() {
        b"HELLO" => "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n",
        b"SET" => ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n|1\r\n+ttl\r\n:3600\r\n+OK\r\n",
        b"EVALSHA" | b"EVAL" => "|1\r\n+popularity\r\n,0.5\r\n>1\r\n+OK\r\n>1\r\n:0\r\n",
        _ => ">1\r\n+OK\r\n-ERR unknown command\r\n",
    };
    // A script says yes with the number it got last.
    let number = words.last().filter(|_| words[0].starts_with(b"EVAL"));
    let yes = number.map(|number| [b":", number.as_slice(), b"\r\n"].concat());
    [plain.as_bytes(), &yes.unwrap_or_default()].concat()
}

#[test]
fn pushes_and_attributes_before_a_reply_do_not_count_as_replies() {
    let start = || {
        Peer::start(|talk| {
            while let Some(words) = talk.read_command() {
                talk.send(&talkative(&words));
            }
        })
    };
    let peers = [start(), start(), start()];
    let client = all_nodes_client(peers.iter().map(Peer::url));
    for _ in 0..20 {
        let mut guard = take(&client, "talkative", LONG);
        guard.extend(LONG).unwrap();
        assert_eq!(guard.release(), Ok(()));
    }
    assert!(
        peers.iter().all(|peer| peer.accepted() == 1),
        "all connections are still used"
    );
}
