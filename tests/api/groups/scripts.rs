//! The scripts of replicated groups, on a real server with replicas and on an embedded node: who
//! writes the marker of a reign, who only reads it, and what is told behind a vote.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use redlatch::embedded::Nodes;
use redlatch_protocol::node::script::{CHECK, REIGN, REIGN_ACKNOWLEDGED, Script};
use support::cli::{Client, Value, encode};
use support::locks::LIMIT;
use support::redis::Server;
use support::servers::Servers;
use support::{eventually, needs};

const MARKER: &str = "{54h}redlatch:reign";

/// A connection to a node.
struct Node(Client);

/// The answer to a greeting: the marker, the id of the reign, and the server's clock.
type Greeted = (String, String, i64);

impl Node {
    fn on(server: &Server) -> Self {
        Self(server.client())
    }

    fn run(&mut self, script: Script, arguments: &[&str]) -> Value {
        let words = ["EVAL", script.source, "1", MARKER];
        self.0.command(&[&words, arguments, &["7"]].concat())
    }

    /// As a client that was greeted with this marker last.
    #[track_caller]
    fn greet_again(&mut self, epoch: &str, nonce: &str, step: &str, last: &str) -> Greeted {
        let run = self.info("run_id");
        match list(self.run(REIGN, &[&run, epoch, nonce, step, last])).as_slice() {
            [Value::Integer(7), marker, id, now] => (marker.text(), id.text(), now.integer()),
            other => panic!("{other:?}"),
        }
    }

    fn info(&mut self, field: &str) -> String {
        self.0.command(&["INFO"]).field(field).unwrap()
    }

    #[track_caller]
    fn greet(&mut self, epoch: &str, nonce: &str, step: &str) -> Greeted {
        self.greet_again(epoch, nonce, step, "")
    }

    /// The answer to a check, behind its number: marker, role, id.
    fn check(&mut self) -> [Value; 3] {
        let mut answer = list(self.run(CHECK, &[]));
        assert_eq!(answer.remove(0), Value::Integer(7));
        answer.try_into().unwrap()
    }

    /// What the marker says.
    fn marker(&mut self) -> Vec<String> {
        let marker = self.0.command(&["GET", MARKER]).text();
        marker.split(' ').map(str::to_owned).collect()
    }
}

fn list(value: Value) -> Vec<Value> {
    let Value::Array(list) = value else {
        panic!("{value:?}")
    };
    list
}

/// What holds of a master that has no replicas.
fn a_marker_is_written_once_for_a_reign(node: &mut Node) {
    let run = node.info("run_id");
    let id = node.info("master_replid");
    assert_eq!(node.check()[0], Value::Null);
    let (marker, greeted, now) = node.greet("3", "ann", "greet");
    assert_eq!(greeted, id);
    let [_, of, in_reign, epoch, since, nonce] = node.marker().try_into().unwrap();
    assert_eq!(
        [run.as_str(), &id, "3", "ann"],
        [&*of, &*in_reign, &*epoch, &*nonce]
    );
    // Rounded up, and the clock rounded down.
    let since: i64 = since.parse().unwrap();
    assert!(since == now || since == now + 1, "{since} {now}");
    assert_eq!(node.0.command(&["PTTL", MARKER]), Value::Integer(-1));

    // It stays as it is, also for a client that has heard of an earlier election only.
    for epoch in ["3", "2"] {
        assert_eq!(node.greet(epoch, "bob", "greet").0, marker, "{epoch}");
    }
    let [marked, role, of] = node.check();
    assert_eq!(
        (marked.text(), role.text(), of.text()),
        (marker.clone(), "master".into(), id.clone())
    );

    // An election that left the reign as it was, another reign, and whatever else is there.
    let (elected, ..) = node.greet("4", "bob", "greet");
    assert!(elected != marker && elected.contains(" 4 ") && elected.contains(" bobafter"));
    let other = elected.replace(&run, &"f".repeat(40));
    // So is one that an earlier version wrote for a majority to vouch for.
    let open = format!("redlatch1 {run} {id} 9 - bob");
    for foreign in [&other, "redlatch1", "", "redlatch1 a b 4 5 bob", &open] {
        node.0.command(&["SET", MARKER, foreign]);
        assert!(
            node.greet("1", "cid", "greet").0.contains(" cidafter"),
            "{foreign}"
        );
        assert_eq!(node.marker()[3], "1");
    }
}

/// What people know of a group, and its servers do not.
fn a_reign_is_adopted_and_renewed(node: &mut Node) {
    let run = node.info("run_id");
    let id = node.info("master_replid");
    let other = "f".repeat(40);
    node.0.command(&["DEL", MARKER]);
    let (greeted, ..) = node.greet("3", "ann", "greet");
    match list(node.run(REIGN, &[&other, "0", "bob", "adopt", ""])).as_slice() {
        [_, marker, ..] => assert_eq!(marker.text(), greeted, "of another run"),
        other => panic!("{other:?}"),
    }
    let (adopted, ..) = node.greet("0", "bob", "adopt");
    assert_eq!(adopted, format!("redlatch1 {run} {id} 3 0 bob"));
    assert_eq!(node.greet("3", "cid", "greet").0, adopted);
    for step in ["renew", "adopt"] {
        assert_eq!(
            node.greet("0", "bob", step).0,
            format!("redlatch1 renewed {id}"),
            "{step}"
        );
    }
    assert!(
        node.greet("0", "cid", "greet")
            .0
            .ends_with(&format!(" cidafter{}", &id[..8]))
    );
}

/// Locks of an earlier reign may still be held, so who knows one leaves it to the others.
fn an_earlier_reign_is_remembered(node: &mut Node) {
    let id = node.info("master_replid");
    let after = |nonce: &str, id: &str| format!(" {nonce}after{}", &id[..8]);
    let forget = |node: &mut Node| {
        node.0.command(&["DEL", MARKER]);
    };
    forget(node);
    let (first, ..) = node.greet("0", "ann", "greet");
    assert!(first.ends_with(" ann"), "{first}");

    let other = first.replace(&id, "0123456789");
    node.0.command(&["SET", MARKER, &other]);
    let (later, ..) = node.greet("0", "bob", "greet");
    assert!(later.ends_with(&after("bob", "0123456789")), "{later}");
    assert_eq!(node.greet("0", "cid", "adopt").0, later, "it is refused");

    // Its keys are gone, and it is greeted by who has seen them, or by another one before.
    forget(node);
    let (gone, ..) = node.greet_again("0", "cid", "greet", &first);
    assert!(gone.ends_with(&after("cid", &id)), "{gone}");
    forget(node);
    let (unseen, ..) = node.greet("0", "dan", "await");
    let (told, ..) = node.greet_again("0", "eve", "greet", &first);
    assert_eq!(told, format!("{unseen}after{}", &id[..8]));
    for last in [&first, &unseen, &told] {
        assert_eq!(node.greet_again("0", "fay", "greet", last).0, told);
    }

    // What was adopted stays so.
    forget(node);
    node.greet("0", "gus", "greet");
    let (adopted, ..) = node.greet("0", "hal", "adopt");
    assert_eq!(node.greet_again("0", "ida", "greet", &first).0, adopted);
    let (again, ..) = node.greet("0", "jon", "adopt");
    assert!(again.ends_with(" 0 jon"), "{again}");
}

#[test]
fn the_reign_of_a_real_server_is_noted() {
    needs!(Shares);
    let server = Server::start(&[]);
    let node = &mut Node::on(&server);
    a_marker_is_written_once_for_a_reign(node);
    a_reign_is_adopted_and_renewed(node);
    an_earlier_reign_is_remembered(node);
}

#[test]
fn the_reign_of_an_embedded_node_is_noted() {
    let nodes = Nodes::builder().formed(false).start(1).unwrap();
    let node = &mut Node(Client::connect(nodes.port(0)).unwrap());
    a_marker_is_written_once_for_a_reign(node);
    a_reign_is_adopted_and_renewed(node);
    an_earlier_reign_is_remembered(node);
}

#[test]
fn a_restart_ends_a_reign() {
    needs!(Shares);
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (before, id, _) = Node::on(&server).greet("0", "ann", "greet");
    server.kill();
    server.restart();
    let (after, other, _) = Node::on(&server).greet("0", "ann", "greet");
    assert!(before != after && id != other, "{before} {after}");
}

/// Until its former connection has timed out, a replica that has connected again is listed twice.
#[test]
fn a_replica_that_is_listed_twice_counts_once() {
    needs!(Shares);
    let server = Server::start(&["--repl-diskless-sync-delay", "0"]);
    let mut replicas = [("7001", "500"), ("7001", "900"), ("7002", "700")].map(|(port, offset)| {
        let mut replica = server.client();
        replica.command(&["REPLCONF", "listening-port", port, "capa", "eof"]);
        replica.send(&encode(&["PSYNC", "?", "-1"])).unwrap();
        (replica, offset)
    });
    let mut node = Node::on(&server);
    let mut are_listed = || {
        for (replica, offset) in &mut replicas {
            replica.send(&encode(&["REPLCONF", "ACK", offset])).unwrap();
        }
        let lines = (0..3)
            .map(|index| node.info(&format!("slave{index}")))
            .collect::<Vec<_>>();
        lines.iter().all(|line| line.contains("online")) && lines[0].contains("offset=500")
    };
    assert!(eventually(LIMIT, &mut are_listed));
    let check = ["", "0", "", "check", "", "2", "1000"];
    let answer = list(node.run(REIGN_ACKNOWLEDGED, &check));
    let [.., listed, offsets, _] = <[Value; 8]>::try_from(answer).unwrap();
    let mut offsets: Vec<_> = list(offsets).iter().map(Value::integer).collect();
    offsets.sort_unstable();
    assert_eq!((listed, offsets), (Value::Integer(2), vec![700, 900]));
}

fn follow(replica: &Server, master: &Server) {
    replica.command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    let is_up = || {
        let info = replica.command(&["INFO", "replication"]);
        info.field("master_link_status").as_deref() == Some("up")
    };
    assert!(eventually(LIMIT, is_up), "it does not follow");
}

#[test]
fn replicas_refuse_and_their_promotion_begins_a_reign() {
    needs!(Shares);
    let servers = Servers::start_with(3, &["--repl-diskless-sync-delay", "0"]);
    (1..3).for_each(|replica| follow(&servers[replica], &servers[0]));
    let [mut first, mut second] = [0, 1].map(|index| Node::on(&servers[index]));
    let (marker, id, _) = first.greet("1", "ann", "greet");
    let copied = || servers[1].command(&["GET", MARKER]) == Value::bulk(&marker);
    assert!(eventually(LIMIT, copied));
    let run = second.info("run_id");
    assert_eq!(
        second.run(REIGN, &[&run, "1", "bob", "greet", ""]),
        Value::Integer(-7)
    );
    let [marked, role, of, ..] = second.check();
    assert_eq!(
        (marked.text(), role.text(), of.text()),
        (marker.clone(), "slave".into(), id.clone())
    );

    // Promoted, it writes a marker of its own; the old master keeps its reign, and what it greeted.
    second.0.command(&["REPLICAOF", "NO", "ONE"]);
    let (known, new, _) = second.greet("1", "bob", "greet");
    let after = format!("after{}", &id[..8]);
    assert!(known.ends_with(&after), "{known}");
    // Also if it had not got the marker.
    second.0.command(&["DEL", MARKER]);
    let (promoted, ..) = second.greet("1", "bob", "greet");
    assert!(promoted.ends_with(&after), "{promoted}");
    assert!(promoted != marker && new != id, "{promoted} {marker}");
    assert_eq!(first.greet("1", "cid", "greet").0, marker);
    // Put back behind the connections' backs: the reign is another one on the same connection.
    follow(&servers[0], &servers[1]);
    assert_eq!(first.check()[1].text(), "slave");
    first.0.command(&["REPLICAOF", "NO", "ONE"]);
    let [marked, role, of, ..] = first.check();
    assert!(marked.text() == promoted && role.text() == "master" && of.text() != id);
    let (again, ..) = first.greet("1", "cid", "greet");
    assert!(again != marker && again != promoted);
}
