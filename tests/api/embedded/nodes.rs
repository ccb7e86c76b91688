//! Embedded nodes stop, restart and pause as their documentation says.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use redlatch::embedded::Nodes;
use redlatch::{LockClient, RegisterError};
use support::cli::{Client, Value, encode};
use support::eventually;
use support::locks::idle;

const LIMIT: Duration = Duration::from_secs(20);

fn connect(nodes: &Nodes, node: usize) -> Client {
    Client::connect(nodes.port(node)).expect("a running node accepts")
}

#[test]
fn each_node_has_its_own_url_identity_and_keys() {
    let nodes = Nodes::start(3).unwrap();
    assert_eq!((nodes.len(), nodes.is_empty()), (3, false));
    let mut run_ids = Vec::new();
    for (node, url) in nodes.urls().into_iter().enumerate() {
        assert_eq!(url, format!("redis://127.0.0.1:{}", nodes.port(node)));
        let mut client = connect(&nodes, node);
        assert_eq!(client.command(&["SET", "k", "v", "NX"]), Value::ok());
        let info = client.command(&["INFO", "server"]);
        assert_eq!(info.field("tcp_port"), Some(nodes.port(node).to_string()));
        let uptime: u64 = info.field("uptime_in_seconds").unwrap().parse().unwrap();
        assert!(uptime >= 30 * 24 * 60 * 60);
        run_ids.extend(info.field("run_id").filter(|id| id.len() == 40));
    }
    run_ids.sort_unstable();
    run_ids.dedup();
    assert_eq!(run_ids.len(), 3);
}

#[test]
fn a_stopped_node_cuts_its_connections_and_refuses_new_ones() {
    let nodes = Nodes::start(2).unwrap();
    let mut client = connect(&nodes, 0);
    client.command(&["PING"]);
    nodes.stop(0);
    nodes.stop(0);
    assert!(client.try_command(&["PING"]).is_err());
    let refused = Client::connect(nodes.port(0))
        .err()
        .map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::ConnectionRefused));
    // Neither has an effect on a node that is down.
    nodes.pause(0);
    nodes.resume(0);
    assert_eq!(
        connect(&nodes, 1).command(&["PING"]),
        Value::Simple("PONG".to_owned())
    );
}

#[test]
fn a_restarted_node_has_the_same_port_and_no_keys() {
    let nodes = Nodes::start(1).unwrap();
    let mut client = connect(&nodes, 0);
    client.command(&["SET", "k", "v"]);
    let before = client.command(&["INFO"]).field("run_id");
    let port = nodes.port(0);

    nodes.restart(0).unwrap();
    idle();
    assert!(client.try_command(&["PING"]).is_err());
    let mut client = connect(&nodes, 0);
    assert_eq!(
        (nodes.port(0), client.command(&["GET", "k"])),
        (port, Value::Null)
    );
    let info = client.command(&["INFO"]);
    assert_ne!(info.field("run_id"), before);
    assert_eq!(
        info.field("uptime_in_seconds")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            / 60,
        0
    );

    nodes.stop(0);
    nodes.restart(0).unwrap();
    idle();
    assert_eq!(
        connect(&nodes, 0).command(&["PING"]),
        Value::Simple("PONG".to_owned())
    );
}

#[test]
fn a_paused_node_runs_pending_commands_when_it_resumes() {
    let nodes = Nodes::start(1).unwrap();
    let mut before = TcpStream::connect(("127.0.0.1", nodes.port(0))).unwrap();
    nodes.pause(0);
    nodes.pause(0);
    let mut during = TcpStream::connect(("127.0.0.1", nodes.port(0))).unwrap();
    for (stream, key) in [(&mut before, "a"), (&mut during, "b")] {
        stream.write_all(&encode(&["SET", key, "v"])).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let silence = stream.read_exact(&mut [0]).unwrap_err().kind();
        assert!(matches!(
            silence,
            ErrorKind::WouldBlock | ErrorKind::TimedOut
        ));
    }
    // Commands that were sent are run, although their connection was closed.
    drop(during);
    nodes.resume(0);
    nodes.resume(0);
    before.set_read_timeout(Some(LIMIT)).unwrap();
    let mut reply = [0; 5];
    before.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+OK\r\n");
    let mut client = connect(&nodes, 0);
    assert!(eventually(LIMIT, || client.command(&["EXISTS", "a", "b"])
        == Value::Integer(2)));
}

#[test]
fn a_paused_node_can_be_stopped_and_restarted() {
    let nodes = Nodes::start(2).unwrap();
    nodes.pause(0);
    nodes.stop(0);
    nodes.pause(1);
    nodes.restart(1).unwrap();
    idle();
    assert_eq!(
        connect(&nodes, 1).command(&["PING"]),
        Value::Simple("PONG".to_owned())
    );
    nodes.pause(1);
    // Dropping paused nodes does not wait for a resume.
}

#[test]
fn settings_are_what_the_nodes_report() {
    let nodes = Nodes::builder()
        .password("p@ss/w%rd")
        .uptime(Duration::from_secs(1_000_000))
        .uptime_after_restart(Duration::from_secs(2_000_000))
        .redis_version("6.2.0")
        .start(1)
        .unwrap();
    let url = format!("redis://:p%40ss%2Fw%25rd@127.0.0.1:{}", nodes.port(0));
    assert_eq!(nodes.urls(), [url]);
    assert!(!format!("{nodes:?}").contains("p@ss"));
    let server_info = || {
        let mut client = connect(&nodes, 0);
        assert_eq!(client.command(&["AUTH", "p@ss/w%rd"]), Value::ok());
        client.command(&["INFO", "server"])
    };
    let uptime = |info: &Value| info.field("uptime_in_seconds").unwrap();
    let info = server_info();
    assert_eq!(info.field("redis_version").as_deref(), Some("6.2.0"));
    assert!(uptime(&info).starts_with("10000"));
    nodes.restart(0).unwrap();
    idle();
    assert!(uptime(&server_info()).starts_with("20000"));
}

#[test]
fn a_foreign_script_runs_as_on_a_server() {
    let nodes = Nodes::start(1).unwrap();
    let mut client = connect(&nodes, 0);
    let script = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])";
    assert_eq!(client.command(&["EVAL", script, "1", "k", "v"]).text(), "v");
    assert!(
        client
            .command(&["EVAL", "no Lua", "0"])
            .text()
            .starts_with("ERR")
    );
}

#[test]
fn bytes_that_are_no_command_get_an_error_and_the_connection_is_closed() {
    let nodes = Nodes::start(1).unwrap();
    let mut client = connect(&nodes, 0);
    client
        .send(b"*1\r\n$4\r\nPING\r\n*1\r\n:4\r\n*1\r\n$4\r\nPING\r\n")
        .unwrap();
    assert_eq!(client.reply().unwrap(), b"+PONG\r\n");
    assert!(client.reply().unwrap().starts_with(b"-ERR Protocol error"));
    assert!(client.reply().is_err());
}

/// A client that sends without reading must not make the node buffer replies without limit. When it
/// reads, it gets all replies.
#[test]
fn a_node_stops_reading_from_a_client_that_does_not_read() {
    const COMMANDS: usize = 400;
    let nodes = Nodes::start(1).unwrap();
    let value = vec![b'x'; 60_000];
    let mut client = connect(&nodes, 0);
    assert_eq!(
        client.command(&[b"SET".as_slice(), b"k", &value]),
        Value::ok()
    );
    client
        .send(&encode(&["GET", "k"]).repeat(COMMANDS))
        .unwrap();
    // Other clients get replies meanwhile.
    assert_eq!(
        connect(&nodes, 0).command(&["STRLEN", "k"]),
        Value::Integer(60_000)
    );
    for _ in 0..COMMANDS {
        assert_eq!(
            client.reply().unwrap().len(),
            60_000 + "$60000\r\n\r\n".len()
        );
    }
}

#[test]
fn nodes_keep_registers_and_one_that_is_restarted_has_no_vote_until_it_is_repaired() {
    let nodes = Nodes::start(3).unwrap();
    let client = LockClient::builder()
        .nodes(nodes.urls())
        .node_timeout(LIMIT)
        .build()
        .unwrap();
    let register = client.register("a").unwrap();
    let set = |text: &str| register.change(|_| Some(text.as_bytes().to_vec())).unwrap();
    set("one");
    nodes.restart(0).unwrap();
    idle();
    set("two");
    let votes = || {
        let registers = client.nodes().into_iter().map(|node| node.registers);
        registers
            .map(|it| it.map(|it| it.is_member()))
            .collect::<Vec<_>>()
    };
    // A node that does not answer yet would not be repaired.
    let restarted = [Some(false), Some(true), Some(true)];
    assert!(eventually(LIMIT, || votes() == restarted));
    client.registers().repair().unwrap();
    assert_eq!(votes(), [Some(true); 3]);
    assert_eq!(register.read().unwrap().unwrap().bytes(), b"two");
    let others = Nodes::builder().formed(false).start(1).unwrap();
    let other = LockClient::new(others.urls())
        .unwrap()
        .register("a")
        .unwrap();
    assert!(matches!(other.read(), Err(RegisterError::NotFormed)));
}
