//! Sends each command to all sides and compares the replies.

use std::time::{Duration, Instant};

use redlatch::embedded::Nodes;
use redlatch_embedded::model::{ConnectionState, Keyspace, NodeOptions};
use redlatch_protocol::node::script;
use redlatch_protocol::time::Time;

use super::equivalence::equivalent;
use super::versions::{Compared, compared};
use support::cli::{Client, Value, encode};
use support::eventually;
use support::redis::Server;

/// How long to wait until a time to live of a few milliseconds has passed on all sides.
const EXPIRY_WAIT: Duration = Duration::from_millis(12);

/// How far apart the sides may be.
const APART_MAX: Duration = Duration::from_secs(2);

/// A redis-server and an embedded node, both empty.
pub(crate) struct Rig {
    server: Server,
    nodes: Nodes,
    password: Option<&'static str>,
}

impl Rig {
    pub(crate) fn start(password: Option<&'static str>) -> Self {
        let mut args = Vec::new();
        let mut nodes = Nodes::builder().formed(false);
        if let Some(password) = password {
            args.extend(["--requirepass", password]);
            nodes = nodes.password(password);
        }
        let nodes = nodes.start(1).expect("a node can be started");
        Self {
            server: Server::start(&args),
            nodes,
            password,
        }
    }

    /// New connections to empty databases without cached scripts.
    pub(crate) fn sequence(&self, name: &str) -> Sequence {
        for port in [self.server.port(), self.nodes.port(0)] {
            let mut client = Client::connect(port).expect("a running server accepts");
            if let Some(password) = self.password {
                assert_eq!(client.command(&["AUTH", password]), Value::ok());
            }
            assert_eq!(client.command(&["FLUSHALL"]), Value::ok());
            assert_eq!(client.command(&["SCRIPT", "FLUSH"]), Value::ok());
        }
        let node = Client::connect(self.nodes.port(0)).expect("the node accepts");
        let real = Client::connect(self.server.port()).expect("a running server accepts");
        let mut options = NodeOptions::default();
        if let Some(password) = self.password {
            options = options.password(password);
        }
        let mut keyspace = Keyspace::new(options);
        let session = keyspace.connect();
        let model = Model {
            keyspace,
            session,
            started: Instant::now(),
        };
        Sequence {
            name: name.to_owned(),
            history: Vec::new(),
            real,
            model,
            node,
        }
    }
}

/// Commands that build on each other.
pub(crate) struct Sequence {
    name: String,
    history: Vec<String>,
    real: Client,
    model: Model,
    node: Client,
}

struct Model {
    keyspace: Keyspace,
    session: ConnectionState,
    started: Instant,
}

impl Model {
    fn reply(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let elapsed = self.started.elapsed();
        let now = Time::from_millis(1_000_000).after(elapsed);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = self.keyspace.execute(now, &mut self.session, &words);
        let mut bytes = Vec::new();
        reply.encode(self.session.protocol, &mut bytes);
        bytes
    }
}

impl Sequence {
    /// Runs one command per line, as `table.rs` describes.
    #[track_caller]
    pub(crate) fn run(&mut self, lines: &str) {
        for line in lines
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if line == "wait" {
                self.wait();
            } else {
                let words: Vec<_> = line.split(' ').map(filled_in).collect();
                self.compare(&words);
            }
        }
    }

    pub(crate) fn wait(&mut self) {
        self.history.push("(wait)".to_owned());
        std::thread::sleep(EXPIRY_WAIT);
    }

    /// Waits while this key is about to expire: the next command might find it on one side only.
    pub(crate) fn wait_out(&mut self, key: &str) {
        let question = encode(&[b"PTTL".to_vec(), key.into()]);
        let left = |reply: Vec<u8>| {
            let text = String::from_utf8_lossy(&reply[1..])
                .trim_end()
                .parse::<i64>();
            text.expect("PTTL answers a number")
        };
        let about_to_expire = 0..8 * EXPIRY_WAIT.as_millis() as i64;
        while about_to_expire.contains(&left(self.real.try_raw(&question).expect("it replies"))) {
            std::thread::sleep(EXPIRY_WAIT);
        }
    }

    /// Compares the replies to a question, which is not shown among the earlier commands. A key
    /// expires on one side before it does on the other by as much as the command that set it
    /// arrived there earlier, which on a busy machine may be long.
    #[track_caller]
    pub(crate) fn ask(&mut self, words: &[Vec<u8>]) {
        // Asked once more, it could expire on one side meanwhile.
        if !eventually(APART_MAX, || self.difference(words).is_none()) {
            self.compare(words);
            self.history.pop();
        }
    }

    /// Sends the command to all sides. Panics with all earlier commands if the replies differ.
    #[track_caller]
    pub(crate) fn compare(&mut self, words: &[Vec<u8>]) {
        let shown: Vec<_> = words
            .iter()
            .map(|word| word.escape_ascii().to_string())
            .collect();
        self.history.push(shown.join(" "));
        if let Some(replies) = self.difference(words) {
            let recent = self.history.len().saturating_sub(25);
            let commands = self.history[recent..].join("\n");
            panic!(
                "{}: the replies to the last of these differ\n{commands}\n{replies}",
                self.name
            );
        }
    }

    /// Sends the command to all sides. Returns the replies if they differ.
    fn difference(&mut self, words: &[Vec<u8>]) -> Option<String> {
        let compared = compared(words);
        if compared == Some(Compared::NotSent) {
            return None;
        }
        let bytes = encode(words);
        let real = self.real.try_raw(&bytes).expect("redis-server replies");
        let node = self
            .node
            .try_raw(&bytes)
            .expect("the node in this process replies");
        let sides = [("the model", self.model.reply(words)), ("the node", node)];
        let other = sides.into_iter().find(|(_, reply)| match compared {
            Some(Compared::NotEqual) => false,
            Some(Compared::Errors) if real[0] == b'-' => reply[0] != b'-',
            _ => !equivalent(words, &real, reply),
        });
        other.map(|(side, reply)| {
            format!(
                "redis-server: {}\n{side}: {}",
                real.escape_ascii(),
                reply.escape_ascii()
            )
        })
    }
}

/// The names of the scripts in the table.
const SCRIPTS: [(&str, script::Script); 14] = [
    ("release", script::RELEASE),
    ("give", script::GIVE),
    ("keep", script::KEEP),
    ("claim", script::CLAIM),
    ("fence", script::FENCE),
    ("inspect", script::INSPECT),
    ("remove", script::REMOVE),
    ("queue", script::QUEUE),
    ("listen", script::LISTEN),
    ("share", script::SHARE),
    ("keep_shared", script::KEEP_SHARED),
    ("release_shared", script::RELEASE_SHARED),
    ("release_reader", script::RELEASE_READER),
    ("scan", script::SCAN),
];

const PUBLISHING: &str =
    "redis.call('SET', KEYS[1], 'x') return redis.call('PUBLISH', ARGV[1], ARGV[2])";

/// A word of the table with its placeholder filled in.
pub(crate) fn filled_in(word: &str) -> Vec<u8> {
    let name = word
        .strip_prefix('{')
        .and_then(|word| word.strip_suffix('}'))
        .unwrap_or_default();
    for (script, is_meant) in SCRIPTS.map(|(meant, script)| (script, name.strip_prefix(meant))) {
        match is_meant {
            Some("") => return script.source.into(),
            Some(".sha1") => return script.sha1.into(),
            _ => {}
        }
    }
    match word {
        "{GIVE.SHA1}" => script::GIVE.sha1.to_ascii_uppercase().into(),
        "{publishing}" => PUBLISHING.into(),
        "{subscribing}" => b"redis.call('SUBSCRIBE', 'news')".into(),
        "{empty}" => Vec::new(),
        "{space}" => b" ".into(),
        "{long}" => vec![b'x'; 300],
        "{entry}" => b"12 50000 60000  owner".into(),
        "{entry-b}" => b"12 40000 60000  other".into(),
        "{entry-news}" => b"12 50000 60000 news owner".into(),
        "{entry-news-s0}" => b"12s0 50000 60000 news owner".into(),
        "{lease-s0}" => b"12s0 50000 60000  owner".into(),
        "{lease-s2}" => b"12s2 50000 60000  owner".into(),
        "{lease-s20}" => b"12s20 50000 60000  owner".into(),
        "{digits}" => vec![b'9'; 400],
        "{huge}" => vec![b'x'; 3_000],
        word => word
            .replace("\\r", "\r")
            .replace("\\n", "\n")
            .replace("\\0", "\0")
            .into(),
    }
}
