//! Requests and answers that are lost, cut, or too long for the network.

use super::setting::{client, formed, in_time, set, with_timeout};
use redlatch::RegisterError;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use support::cli::Value;
use support::eventually;
use support::locks::LIMIT;
use support::proxy::{Mode, proxied};

#[test]
fn a_foreign_value_beside_a_change_that_was_sent_is_no_proof_that_it_has_not_happened() {
    let (servers, _) = formed(3);
    let (proxies, urls) = proxied(&servers);
    let short = with_timeout(&urls, Duration::from_millis(500));
    let register = short.register("a").unwrap();
    set(&register, "one");
    let key = ":redlatch:register:a";
    let present = || [0, 1].map(|index| servers[index].command(&["GET", key]));
    let before = present();
    servers[2].command(&["SET", key, "x"]);
    proxies[2].set(Mode::Refuse);
    proxies[..2]
        .iter()
        .for_each(|proxy| proxy.set(Mode::Swallow));
    let changing = thread::spawn(move || register.change(|_| Some(b"two".to_vec())));
    let is_accepted = || {
        present()
            .iter()
            .zip(&before)
            .all(|(now, before)| now != before)
    };
    assert!(eventually(LIMIT, is_accepted));
    // The second goes down, and the third comes back.
    proxies[1].set(Mode::Refuse);
    [0, 2]
        .iter()
        .for_each(|index| proxies[*index].set(Mode::Pass));
    let error = changing.join().unwrap().unwrap_err();
    servers[2].command(&["DEL", key]);
    let value = client(&servers.urls())
        .register("a")
        .unwrap()
        .read()
        .unwrap()
        .unwrap();
    assert_eq!(value.bytes(), b"two");
    assert!(error.may_have_happened(), "{error:?}");
}

/// A proxy that ends a connection on which more than this arrives at once, as a network may that
/// loses long packets.
fn short_pipe(port: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                return;
            };
            let (client_in, server_out) =
                (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || copy(client_in, server_out, 4096));
            thread::spawn(move || copy(server, client, usize::MAX));
        }
    });
    url
}

fn copy(mut source: TcpStream, mut sink: TcpStream, most: usize) {
    let mut chunk = [0; 16 * 1024];
    while let Ok(read @ 1..) = source.read(&mut chunk) {
        if read > most || sink.write_all(&chunk[..read]).is_err() {
            break;
        }
    }
    let _ = (
        source.shutdown(Shutdown::Both),
        sink.shutdown(Shutdown::Both),
    );
}

#[test]
fn a_change_that_no_node_can_receive_ends() {
    let (servers, _) = formed(3);
    let urls: Vec<String> = servers
        .iter()
        .map(|server| short_pipe(server.port()))
        .collect();
    let register = with_timeout(&urls, Duration::from_millis(500))
        .register("a")
        .unwrap();
    set(&register, "short");
    let result = in_time(move || register.change(|_| Some(vec![b'x'; 12_000])));
    let error = result.unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
}

#[test]
fn servers_that_can_write_nothing_are_an_error() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    set(&register, "one");
    for server in servers.iter() {
        server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    }
    let again = register.clone();
    let error = in_time(move || again.change(|_| Some(b"two".to_vec()))).unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
    assert!(register.read().unwrap().unwrap().bytes() == b"one");
    for server in servers.iter() {
        assert_eq!(
            server.command(&["CONFIG", "SET", "maxmemory", "0"]),
            Value::ok()
        );
        server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    }
    let error = in_time(move || register.change(|_| Some(b"two".to_vec()))).unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
}

#[test]
fn a_change_ends_that_nodes_promise_but_have_no_right_to_accept() {
    let (servers, first) = formed(3);
    let register = first.register("a").unwrap();
    set(&register, "one");
    let rights =
        "ACL SETUSER default resetkeys %R~:redlatch:register:a ~*:promise:* ~*:member ~*-floor";
    for server in servers.iter() {
        assert_eq!(
            server.command(&rights.split(' ').collect::<Vec<_>>()),
            Value::ok()
        );
    }
    let error = in_time(move || register.change(|_| Some(b"two".to_vec()))).unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
}
