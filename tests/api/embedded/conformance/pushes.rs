//! Compares the messages to connections that track keys or subscribe to channels: those of a
//! redis-server, of the model, and of the model behind its socket.

use std::time::{Duration, Instant};

use redlatch::embedded::Nodes;
use redlatch_embedded::model::{ConnectionState, Keyspace, NodeOptions, OwnedReply};
use redlatch_protocol::time::Time;

use super::rig::filled_in;
use super::versions::{self, Compared};
use support::cli::{Client, encode};
use support::redis::Server;

/// Redis looks for expired keys ten times per second.
const EXPIRY_WAIT: Duration = Duration::from_millis(600);

/// Commands of the connections `a` and `b`. `wait` waits until short times to live have passed and
/// servers have noticed it.
const SEQUENCES: &[(&str, &str)] = &[
    ("tracked_key", include_str!("pushes/tracked_key.txt")),
    ("changes", include_str!("pushes/changes.txt")),
    ("modes", include_str!("pushes/modes.txt")),
    ("channels", include_str!("pushes/channels.txt")),
    ("queue", include_str!("pushes/queue.txt")),
    ("shares", include_str!("pushes/shares.txt")),
];

/// One of the servers, with two connections.
trait Side {
    /// The reply to a command of a connection, encoded.
    fn reply(&mut self, who: usize, words: &[Vec<u8>]) -> Vec<u8>;

    /// The messages that have been sent to a connection since the last call.
    fn pushes(&mut self, who: usize) -> Vec<Vec<u8>>;

    /// Time has passed.
    fn expire(&mut self) {}
}

/// A server behind sockets, and messages that came before a reply.
struct Connections([Client; 2], [Vec<Vec<u8>>; 2]);

impl Side for Connections {
    fn reply(&mut self, who: usize, words: &[Vec<u8>]) -> Vec<u8> {
        let client = &mut self.0[who];
        client.send(&encode(words)).expect("the server reads");
        loop {
            let reply = client.reply().expect("the server replies");
            if !reply.starts_with(b">") || !versions::may_message_come_first() {
                return reply;
            }
            self.1[who].push(reply);
        }
    }

    /// The messages that come before the reply to a command after which `CLIENT CACHING YES` still
    /// counts, and whose reply is an integer.
    fn pushes(&mut self, who: usize) -> Vec<Vec<u8>> {
        let client = &mut self.0[who];
        let mut messages = Vec::new();
        client
            .send(&encode(&["CLIENT", "ID"]))
            .expect("the server reads");
        messages.append(&mut self.1[who]);
        let replies = std::iter::from_fn(|| client.reply().ok());
        messages.extend(replies.take_while(|reply| !reply.starts_with(b":")));
        messages
    }
}

struct Model {
    keyspace: Keyspace,
    sessions: [ConnectionState; 2],
    pushes: [Vec<Vec<u8>>; 2],
    started: Instant,
}

impl Model {
    fn new() -> Self {
        let mut keyspace = Keyspace::new(NodeOptions::default());
        let sessions = [keyspace.connect(), keyspace.connect()];
        Self {
            keyspace,
            sessions,
            pushes: Default::default(),
            started: Instant::now(),
        }
    }

    fn now(&self) -> Time {
        Time::from_millis(1_000_000).after(self.started.elapsed())
    }

    fn collect(&mut self) {
        while let Some((id, message)) = self.keyspace.poll_push() {
            let ids = self.sessions.each_ref().map(|session| session.id);
            let who = ids
                .iter()
                .position(|other| *other == id)
                .expect("a connection's id");
            let mut bytes = Vec::new();
            message.encode(self.sessions[who].protocol, &mut bytes);
            self.pushes[who].push(bytes);
        }
    }
}

impl Side for Model {
    fn reply(&mut self, who: usize, words: &[Vec<u8>]) -> Vec<u8> {
        let now = self.now();
        let mut bytes = Vec::new();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let session = &mut self.sessions[who];
        let reply = self.keyspace.execute(now, session, &words);
        match reply {
            // The first is in the place of the reply, as it is on a connection.
            OwnedReply::Messages(messages) => {
                let encode = |message: OwnedReply| {
                    let mut bytes = Vec::new();
                    message.encode(session.protocol, &mut bytes);
                    bytes
                };
                let mut messages = messages.into_iter().map(encode);
                bytes.extend(messages.next().expect("a message"));
                self.pushes[who].extend(messages);
            }
            reply => reply.encode(session.protocol, &mut bytes),
        }
        self.collect();
        bytes
    }

    fn pushes(&mut self, who: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.pushes[who])
    }

    fn expire(&mut self) {
        let now = self.now();
        self.keyspace.expire_tracked(now);
        self.collect();
    }
}

/// What each connection receives: one line per command, and one per message.
fn transcript(mut side: impl Side, lines: &str) -> String {
    let mut seen = String::new();
    for line in lines
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (who, command) = line.split_once(' ').unwrap_or((line, ""));
        seen += &format!("{line}\n");
        if who == "wait" {
            std::thread::sleep(EXPIRY_WAIT);
            side.expire();
        } else {
            let words: Vec<_> = command.split(' ').map(filled_in).collect();
            if versions::compared(&words) == Some(Compared::NotSent) {
                continue;
            }
            let reply = side.reply(usize::from(who == "b"), &words);
            // The reply to HELLO has the connection's id in it.
            let shown = match command.starts_with("HELLO") {
                true => Vec::new(),
                false if command.contains("{queue") => with_rounded_ttl(&reply),
                false => reply,
            };
            seen += &format!("    {}\n", shown.escape_ascii());
        }
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            for message in side.pushes(index) {
                seen += &format!("    to {name}: {}\n", message.escape_ascii());
            }
        }
    }
    seen
}

/// The reply of `queue.lua` with the time to live in it rounded up to whole seconds: the command
/// before may have been some milliseconds earlier on one side than on the other.
fn with_rounded_ttl(reply: &[u8]) -> Vec<u8> {
    const PLACE: usize = 5;
    let mut lines: Vec<String> = String::from_utf8_lossy(reply)
        .split("\r\n")
        .map(str::to_owned)
        .collect();
    let ttl = lines
        .get(PLACE)
        .and_then(|line| line.strip_prefix(':')?.parse::<u64>().ok());
    if let Some(ttl) = ttl {
        lines[PLACE] = format!(":{}", ttl.next_multiple_of(1_000));
    }
    lines.join("\r\n").into_bytes()
}

#[test]
fn a_connection_that_tracks_keys_gets_the_same_messages() {
    support::needs!(Tracking);
    let server = Server::start(&[]);
    let nodes = Nodes::start(1).expect("a node");
    let both = |port| {
        Connections(
            [(), ()].map(|()| Client::connect(port).expect("a connection")),
            Default::default(),
        )
    };
    for (name, lines) in SEQUENCES {
        for port in [server.port(), nodes.port(0)] {
            Client::connect(port)
                .expect("a connection")
                .command(&["FLUSHALL"]);
        }
        let real = transcript(both(server.port()), lines);
        assert!(real.contains("invalidate"), "{name} is about messages");
        assert_same(
            &real,
            &transcript(Model::new(), lines),
            &format!("{name}: the model"),
        );
        assert_same(
            &real,
            &transcript(both(nodes.port(0)), lines),
            &format!("{name}: the node"),
        );
    }
}

/// Panics with the transcript up to the first difference.
#[track_caller]
fn assert_same(real: &str, other: &str, what: &str) {
    let [real, other] = [real, other].map(versions::comparable_transcript);
    let same = real
        .lines()
        .zip(other.lines())
        .take_while(|(real, other)| real == other)
        .count();
    let upto = |text: &str| text.lines().take(same + 1).collect::<Vec<_>>().join("\n");
    assert!(
        real == other,
        "{what}:\n{}\nand redis-server:\n{}",
        upto(&other),
        upto(&real)
    );
}

/// The kernel may give both in one segment; the reply comes first anyway.
#[test]
fn a_message_comes_between_the_replies_to_the_command_that_caused_it_and_to_the_next() {
    let nodes = Nodes::start(1).expect("a node");
    let mut client = Client::connect(nodes.port(0)).expect("a connection");
    let commands: [&[&str]; 7] = [
        &["HELLO", "3"],
        &["CLIENT", "TRACKING", "ON", "OPTIN"],
        &["CLIENT", "CACHING", "YES"],
        &["EXISTS", "k"],
        &["SET", "k", "v"],
        &["SET", "k", "w"],
        &["PING"],
    ];
    client
        .send(&commands.map(encode).concat())
        .expect("the node reads");
    let kinds: Vec<u8> = (0..8)
        .map(|_| client.reply().expect("a reply")[0])
        .collect();
    assert_eq!(kinds, b"%++:+>++");
}
