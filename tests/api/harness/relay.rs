//! Tests of the relay that other tests use.

use std::time::Duration;

use support::cli::{Client, Value, encode};
use support::eventually;
use support::locks::{LIMIT, value};
use support::redis::Server;
use support::relay::Relay;

#[test]
fn held_bytes_are_delivered_after_later_ones() {
    let server = Server::start(&[]);
    let relay = Relay::start(&server);
    let mut old = Client::connect(relay.port()).unwrap();
    assert_eq!(old.command(&["SET", "k", "before"]), Value::ok());
    relay.hold();
    old.send(&encode(&["SET", "k", "old"])).unwrap();
    old.send(&encode(&["APPEND", "k", "est"])).unwrap();
    assert!(eventually(LIMIT, || relay.held() == 2));
    let mut new = Client::connect(relay.port()).unwrap();
    assert!(!relay.is_replaced(), "the old connection is still open");
    drop(old);
    assert!(eventually(LIMIT, || relay.is_replaced()));
    assert_eq!(new.command(&["SET", "k", "new"]), Value::ok());
    relay.deliver();
    assert_eq!(value(&server, "k").as_deref(), Some(&b"oldest"[..]));
    assert_eq!((relay.held(), relay.accepted()), (0, 2));
    assert_eq!(new.command(&["GET", "k"]), Value::bulk("oldest"));
}

#[test]
fn held_bytes_of_a_connection_that_the_server_ends_are_lost() {
    support::needs!(ClientIds);
    let server = Server::start(&[]);
    let relay = Relay::start(&server);
    let mut client = Client::connect(relay.port()).unwrap();
    let id = client.command(&["CLIENT", "ID"]).integer().to_string();
    relay.hold();
    client.send(&encode(&["SET", "k", "held"])).unwrap();
    assert!(eventually(LIMIT, || relay.held() == 1));
    assert_eq!(
        server.command(&["CLIENT", "KILL", "ID", &id]),
        Value::Integer(1)
    );
    drop(client);
    relay.deliver();
    assert_eq!(value(&server, "k"), None);
}

#[test]
fn a_repeated_command_runs_twice_and_gets_one_reply() {
    let server = Server::start(&[]);
    let relay = Relay::doubling(&server);
    let mut client = Client::connect(relay.port()).unwrap();
    for round in 0..5 {
        assert_eq!(
            client.command(&["INCR", "k"]),
            Value::Integer(2 * round + 1)
        );
    }
    let relay = Relay::start(&server);
    let mut client = Client::connect(relay.port()).unwrap();
    client.command(&["SET", "k", "first"]);
    client.command(&["SET", "k", "last"]);
    relay.deliver_again();
    assert_eq!(value(&server, "k").as_deref(), Some(&b"first"[..]));
}

#[test]
fn inserted_bytes_arrive_before_the_relay_is_settled() {
    let server = Server::start(&[]);
    let relay = Relay::start(&server);
    let mut client = Client::connect(relay.port()).unwrap();
    for delay in [0, 5, 60].map(Duration::from_millis) {
        relay.repeat_after(Some(delay));
        assert_eq!(client.command(&["ECHO", "said"]), Value::bulk("said"));
        relay.settle();
        relay.repeat_after(None);
        assert_eq!(client.reply().unwrap(), b"$4\r\nsaid\r\n");
    }
    relay.say(b"+UNASKED\r\n");
    assert_eq!(client.reply().unwrap(), b"+UNASKED\r\n");
    relay.say_in_parts(b"+IN ", b"PARTS\r\n");
    assert_eq!(client.command(&["PING"]).text(), "IN PARTS");
    assert_eq!(client.reply().unwrap(), b"+PONG\r\n");
    relay.say(b"+BYE\r\n");
    relay.hang_up();
    assert_eq!(client.reply().unwrap(), b"+BYE\r\n");
    assert!(client.reply().is_err());
}
