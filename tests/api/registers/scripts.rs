//! The scripts of registers on a real server, step by step: what they refuse, and what they leave.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use redlatch_protocol::engine::Token;
use redlatch_protocol::node::script::Script;
use redlatch_registers::{Ballot, script};
use support::cli::Value;
use support::redis::Server;

const MARK: &str = "redlatch 1 group ";
const KEYS: [&str; 4] = [
    ":redlatch:register:a",
    ":redlatch:promise:a",
    ":redlatch:member",
    ":redlatch:register-floor",
];

/// A server with the mark of a member, and what the scripts are asked.
struct Node(Server);

fn ballot(number: u64, owner: u8) -> Ballot {
    Ballot::new(number, Token::new([owner; Token::LEN])).unwrap()
}

impl Node {
    fn start() -> Self {
        let server = Server::start(&[]);
        server.command(&["SET", KEYS[2], "redlatch 1 group run member durable"]);
        Self(server)
    }

    /// Runs a script with these arguments behind the mark, and `7` behind them.
    fn run(&self, script: Script, arguments: &[&[u8]]) -> Vec<Value> {
        self.run_as(MARK, script, arguments)
    }

    fn run_as(&self, mark: &str, script: Script, arguments: &[&[u8]]) -> Vec<Value> {
        let mut words: Vec<&[u8]> = vec![b"EVAL", script.source.as_bytes(), b"4"];
        words.extend(KEYS.iter().map(|key| key.as_bytes()));
        words.push(mark.as_bytes());
        words.extend(arguments);
        words.push(b"7");
        match self.0.command(&words) {
            Value::Array(list) => list,
            other => panic!("{other:?}"),
        }
    }

    /// Whether it promises.
    fn prepare(&self, ballot: Ballot) -> bool {
        self.run(script::PREPARE, &[&ballot.to_bytes()])[0] == Value::Integer(7)
    }

    fn accept(&self, ballot: Ballot, value: &[u8]) -> bool {
        let next = ballot.next().unwrap().to_bytes();
        self.run(script::ACCEPT, &[&ballot.to_bytes(), &next, value])[0] == Value::Integer(7)
    }

    fn collect(&self, ballot: Option<Ballot>) {
        let ballot = ballot.map_or(Vec::new(), |ballot| ballot.to_bytes().to_vec());
        assert_eq!(self.run(script::COLLECT, &[&ballot]), [Value::Integer(7)]);
    }

    /// What was accepted: its number and its value.
    fn state(&self) -> Option<(u64, Vec<u8>)> {
        match &self.run(script::READ_REGISTER, &[])[..] {
            [Value::Integer(7), Value::Bulk(bytes)] => {
                let (ballot, value) = Ballot::read(bytes).unwrap();
                Some((ballot.number(), value.to_vec()))
            }
            [Value::Integer(7), Value::Null] => None,
            other => panic!("{other:?}"),
        }
    }

    fn floor(&self) -> Option<String> {
        let floor = self.0.command(&["GET", KEYS[3]]);
        (floor != Value::Null).then(|| floor.text())
    }
}

#[test]
fn of_two_owners_with_one_number_the_first_is_served() {
    let node = Node::start();
    assert!(
        node.prepare(ballot(5, 1)) && node.prepare(ballot(5, 1)),
        "once more"
    );
    assert!(!node.prepare(ballot(5, 2)) && !node.prepare(ballot(4, 1)));
    assert!(!node.accept(ballot(5, 2), b"x") && node.state().is_none());
    assert!(node.accept(ballot(5, 1), b"one"));
    assert_eq!(node.state(), Some((5, b"one".to_vec())));
    // The next ballot is promised with it, to the same owner.
    assert!(!node.prepare(ballot(6, 2)) && node.accept(ballot(6, 1), b"two"));
    assert!(node.prepare(ballot(9, 2)) && !node.accept(ballot(7, 1), b"three"));
    assert_eq!(node.state(), Some((6, b"two".to_vec())));
}

#[test]
fn an_accept_that_arrives_again_changes_nothing_and_below_the_promise_neither() {
    let node = Node::start();
    assert!(
        node.accept(ballot(5, 1), b"one"),
        "no prepare is needed on this node"
    );
    assert!(node.prepare(ballot(9, 2)));
    assert!(node.accept(ballot(5, 1), b"other bytes"), "it was accepted");
    assert_eq!(node.state(), Some((5, b"one".to_vec())));
    assert!(!node.prepare(ballot(9, 1)), "and the promise stands");
    assert!(node.accept(ballot(9, 2), b"two") && !node.accept(ballot(5, 1), b"one"));
    assert_eq!(node.state(), Some((9, b"two".to_vec())));
}

#[test]
fn a_refusal_says_what_came_first() {
    let node = Node::start();
    node.accept(ballot(5, 1), b"one");
    let stored = [&ballot(5, 1).to_bytes()[..], b"one"].concat();
    let expected = [
        Value::Integer(-7),
        Value::Integer(6),
        Value::Bulk(stored),
        Value::Integer(0),
    ];
    assert_eq!(
        node.run(script::PREPARE, &[&ballot(3, 2).to_bytes()]),
        expected
    );
}

#[test]
fn what_is_collected_leaves_its_promise_as_the_floor() {
    let node = Node::start();
    node.accept(ballot(5, 1), b"");
    node.prepare(ballot(8, 2));
    // Of another ballot, or with a value.
    node.collect(Some(ballot(4, 1)));
    node.collect(None);
    assert_eq!(node.state(), Some((5, Vec::new())));
    node.collect(Some(ballot(5, 1)));
    assert_eq!((node.state(), node.floor()), (None, Some("8".to_owned())));
    assert_eq!(
        node.0.command(&["EXISTS", KEYS[0], KEYS[1]]),
        Value::Integer(0)
    );
    // Nothing that was promised or sent before counts now.
    assert!(!node.accept(ballot(8, 2), b"late") && !node.accept(ballot(6, 1), b"late"));
    assert!(!node.prepare(ballot(8, 2)) && node.prepare(ballot(9, 2)));
    node.accept(ballot(9, 2), b"new");
    node.collect(Some(ballot(5, 1)));
    node.collect(Some(ballot(9, 2)));
    assert_eq!(node.state(), Some((9, b"new".to_vec())), "it has a value");
    assert_eq!(node.floor(), Some("8".to_owned()));
}

#[test]
fn a_promise_without_a_value_is_collected_too_and_the_floor_only_grows() {
    let node = Node::start();
    node.prepare(ballot(8, 2));
    node.collect(None);
    assert_eq!(
        (node.floor(), node.prepare(ballot(8, 2))),
        (Some("8".to_owned()), false)
    );
    node.0.command(&["SET", KEYS[3], "100"]);
    node.accept(ballot(101, 1), b"");
    node.0.command(&["SET", KEYS[3], "9007199254740000"]);
    node.collect(Some(ballot(101, 1)));
    assert_eq!(node.floor(), Some("9007199254740000".to_owned()));
}

#[test]
fn bytes_are_raised_while_nothing_was_promised_since_and_the_last_removes_the_keys() {
    let node = Node::start();
    let raise = |levels: &[u8]| match &node.run(script::RAISE, &[levels])[..] {
        [Value::Integer(7), Value::Bulk(bytes)] => {
            Some(Ballot::read(bytes).unwrap().1.escape_ascii().to_string())
        }
        [Value::Integer(-7), Value::Integer(_), _, Value::Integer(_)] => None,
        other => panic!("{other:?}"),
    };
    let raised = |text: &str| Some(text.to_owned());
    assert_eq!(raise(b"\x01"), None, "there is no value");
    node.accept(ballot(5, 1), b"one\0\0");
    assert_eq!(raise(b"\x01\x00"), raised(r"one\x01\x00"));
    assert_eq!(raise(b"\x00\x02"), raised(r"one\x01\x02"));
    assert_eq!(
        raise(b"\x02\x01"),
        raised(r"one\x02\x02"),
        "none is lowered"
    );
    assert!(node.accept(ballot(5, 1), b"one\0\0"), "late");
    assert_eq!(node.state(), Some((5, b"one\x02\x02".to_vec())));
    // Whoever has prepared a ballot goes on from what it saw.
    assert!(node.prepare(ballot(9, 2)) && raise(b"\x03\x03").is_none());
    node.accept(ballot(9, 2), b"two\0\0");
    assert_eq!(raise(b"\x03\x00"), raised(r"two\x03\x00"));
    assert_eq!(
        (raise(b"\x00\x03"), node.state()),
        (raised(r"two\x03\x03"), None)
    );
    assert_eq!(node.floor(), Some("10".to_owned()));
    assert_eq!(
        node.0.command(&["EXISTS", KEYS[0], KEYS[1]]),
        Value::Integer(0)
    );
    assert!(
        raise(b"\x01\x00").is_none() && !node.accept(ballot(9, 2), b"two\0\0"),
        "late"
    );
    // What was deleted has no bytes.
    node.accept(ballot(11, 1), b"");
    assert_eq!(raise(b"\x01"), None);
}

#[test]
fn a_node_with_another_mark_or_none_changes_nothing() {
    let node = Node::start();
    let ballot = ballot(5, 1).to_bytes();
    for mark in [
        "redlatch 1 other run member durable",
        "redlatch 1 group",
        "",
    ] {
        node.0.command(&["SET", KEYS[2], mark]);
        for (script, arguments) in [
            (script::PREPARE, &[&ballot[..]][..]),
            (script::ACCEPT, &[&ballot, &ballot, b"value"]),
            (script::COLLECT, &[b""]),
            (script::READ_REGISTER, &[]),
            (script::RAISE, &[b"\x01"]),
        ] {
            assert_eq!(
                node.run(script, arguments),
                [Value::Integer(-7), Value::bulk(mark)]
            );
        }
    }
    node.0.command(&["DEL", KEYS[2]]);
    assert_eq!(
        node.run(script::PREPARE, &[&ballot]),
        [Value::Integer(-7), Value::Null]
    );
    assert_eq!(node.0.command(&["DBSIZE"]), Value::Integer(0));
}

#[test]
fn a_mark_is_replaced_only_if_it_is_the_one_that_was_seen() {
    let server = Server::start(&[]);
    let mark = |step: &str, seen: &str, new: &str| {
        let words = [
            "EVAL",
            script::MARK.source,
            "1",
            KEYS[2],
            step,
            seen,
            new,
            " run ",
            "7",
        ];
        match server.command(&words) {
            Value::Array(list) if list[0] == Value::Integer(7) => list[1].clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(mark("look", "", ""), Value::Null);
    assert_eq!(
        mark("enter", "", "late"),
        Value::Null,
        "a node that has forgotten"
    );
    let joining = mark("join", "", "joining ").text();
    let number = joining
        .strip_prefix("joining ")
        .and_then(|rest| rest.strip_suffix(" run "));
    assert!(
        number.unwrap().parse::<u64>().unwrap() > 1_600_000_000_000_000,
        "in microseconds"
    );
    assert_eq!(mark("join", "", "joining ").text(), joining, "as it is");
    assert_eq!(mark("enter", "joining 1", "late").text(), joining);
    let again = mark("join", &joining, "joining ").text();
    assert_ne!(again, joining, "it draws another number");
    assert_eq!(mark("enter", &joining, "late").text(), again);
    assert_eq!(mark("enter", &again, "member").text(), "member");
    assert_eq!(mark("join", "", "joining ").text(), "member");
    assert_eq!(
        mark("join", &again, "joining ").text(),
        "member",
        "a late one"
    );
}

#[test]
fn a_node_that_joins_gets_states_and_a_floor_and_serves_nobody_else() {
    let node = Node::start();
    let joining = "redlatch 1 joining 17 run ";
    node.0.command(&["SET", KEYS[2], joining]);
    let refused = [Value::Integer(-7), Value::Bulk(joining.into())];
    let state = ballot(5, 1).to_bytes();
    assert_eq!(
        node.run(script::INSTALL, &[&state, b"x", b"3"]),
        refused,
        "of another mark"
    );
    assert_eq!(node.run(script::COPY, &[]), refused);
    let install = |arguments: &[&[u8]]| node.run_as(joining, script::INSTALL, arguments);
    assert_eq!(install(&[&state, b"value", b"3"]), [Value::Integer(7)]);
    assert_eq!(install(&[&state, b"value", b"2"]), [Value::Integer(7)]);
    assert_eq!(
        (node.floor(), node.0.command(&["DBSIZE"])),
        (Some("3".into()), Value::Integer(4))
    );
    // Now it is a member.
    node.0
        .command(&["SET", KEYS[2], "redlatch 1 group run member durable"]);
    assert_eq!(node.state(), Some((5, b"value".to_vec())));
    assert!(!node.prepare(ballot(4, 2)) && node.prepare(ballot(6, 2)));
    let copy = node.run(script::COPY, &[]);
    assert_eq!(
        copy[1..],
        [
            Value::Bulk([&state[..], b"value"].concat()),
            Value::Integer(3)
        ]
    );
    assert_eq!(
        install(&[b"", b"", b"9"])[0],
        Value::Integer(-7),
        "a late one"
    );
    node.0.command(&["SET", KEYS[2], joining]);
    assert_eq!(install(&[b"", b"", b"0"]), [Value::Integer(7)]);
    assert_eq!(
        (node.floor(), node.0.command(&["DBSIZE"])),
        (Some("3".into()), Value::Integer(2))
    );
}
