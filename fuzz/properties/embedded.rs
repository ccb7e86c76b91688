//! The model of a node, which gets any commands in any order on two connections.
//!
//! Properties: nothing panics; each reply is valid RESP in both versions of the protocol; a refused
//! command changes nothing, unless it is a script that fails on its way; the passage of time only
//! makes keys expire when they are due; `NX` never changes an existing key; a connection that is
//! not authenticated cannot access keys; and only a connection that exists is told of changed keys,
//! in valid RESP.

use super::input::Input;
use redlatch_embedded::model::{ConnectionState, Keyspace, NodeOptions, OwnedReply, Protocol};
use redlatch_protocol::node::script;
use redlatch_protocol::resp::{LINE_MAX, Reply, decode};
use redlatch_protocol::time::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// The words of the commands.
const WORDS: [&[u8]; 115] = [
    b"SET",
    b"GET",
    b"DEL",
    b"EVAL",
    b"EVALSHA",
    b"PEXPIRE",
    b"EXPIRE",
    b"PTTL",
    b"TTL",
    b"EXISTS",
    b"LPUSH",
    b"STRLEN",
    b"TYPE",
    b"HELLO",
    b"AUTH",
    b"SELECT",
    b"INFO",
    b"CLIENT",
    b"SCRIPT",
    b"PING",
    b"ECHO",
    b"DBSIZE",
    b"FLUSHALL",
    b"FLUSHDB",
    b"CONFIG",
    b"COMMAND",
    b"TIME",
    b"appendfsync",
    b"RESET",
    b"QUIT",
    b"set",
    b"Get",
    b"NX",
    b"XX",
    b"GT",
    b"LT",
    b"PX",
    b"EX",
    b"KEEPTTL",
    b"EXAT",
    b"px",
    b"nx",
    b"ASYNC",
    b"SYNC",
    b"LOAD",
    b"FLUSH",
    b"LIST",
    b"INFO",
    b"ID",
    b"GETNAME",
    b"SETNAME",
    b"COUNT",
    b"DOCS",
    b"server",
    b"keyspace",
    b"default",
    b"secret",
    b"name",
    b"key",
    b"other",
    b"list",
    b"token-of-twenty-byte",
    b"another-twenty-bytes",
    b"1",
    b"0",
    b"-1",
    b"2",
    b"3",
    b"16",
    b"1000",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"+1",
    b"01",
    b"shorter",
    b"",
    script::GIVE.source.as_bytes(),
    script::GIVE.sha1.as_bytes(),
    script::KEEP.source.as_bytes(),
    b"restore",
    script::KEEP.sha1.as_bytes(),
    script::CLAIM.source.as_bytes(),
    script::CLAIM.sha1.as_bytes(),
    script::REMOVE.sha1.as_bytes(),
    script::REMOVE.source.as_bytes(),
    b"CLIENT",
    b"KILL",
    b"ID",
    b"TRACKING",
    b"CACHING",
    b"ON",
    b"OPTIN",
    b"OFF",
    b"YES",
    script::LISTEN.source.as_bytes(),
    script::LISTEN.sha1.as_bytes(),
    script::QUEUE.source.as_bytes(),
    script::QUEUE.sha1.as_bytes(),
    script::SHARE.source.as_bytes(),
    script::SHARE.sha1.as_bytes(),
    script::KEEP_SHARED.source.as_bytes(),
    script::KEEP_SHARED.sha1.as_bytes(),
    script::RELEASE_SHARED.source.as_bytes(),
    script::RELEASE_SHARED.sha1.as_bytes(),
    script::RELEASE_READER.source.as_bytes(),
    script::RELEASE_READER.sha1.as_bytes(),
    script::INSPECT.source.as_bytes(),
    script::INSPECT.sha1.as_bytes(),
    script::SCAN.source.as_bytes(),
    script::SCAN.sha1.as_bytes(),
    b"redlatch:shared",
    b"key:redlatch:holders",
    b":shorter",
    b"12s0 owner",
    b"12s3 owner",
];

const MILLISECOND: Duration = Duration::from_millis(1);

/// The contents of a node: by database and key, the value if it is a string, and the remaining ttl.
type Contents = BTreeMap<(usize, Vec<u8>), (Option<Vec<u8>>, Option<Duration>)>;

struct Node {
    keyspace: Keyspace,
    connections: [ConnectionState; 2],
    now: Time,
}

/// Panics unless a node behaves correctly for the commands in `data`.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input(data);
    let with_password = input.byte().is_some_and(|byte| byte % 2 == 1);
    let options = NodeOptions::default();
    let options = if with_password {
        options.password("secret")
    } else {
        options
    };
    let mut keyspace = Keyspace::new(options);
    let connections = [keyspace.connect(), keyspace.connect()];
    let mut node = Node {
        keyspace,
        connections,
        now: Time::ZERO,
    };
    while let Some(what) = input.byte() {
        match what % 16 {
            0 => node.wait(Duration::from_micros(1 << (what / 16 * 3))),
            1 => node.restart(what / 16 % 2 == 0),
            2 => node.keyspace.flush_scripts(),
            kind => {
                // The scripts about shares and queues have up to 14 words.
                let count = if kind == 3 { 8 + what / 32 } else { what / 32 };
                let words: Vec<&[u8]> = (0..count).map(|_| word(&mut input)).collect();
                node.run(usize::from(what / 16 % 2), &words);
            }
        }
    }
}

/// Does this error come from a script that may have written before it? Wrong arguments of a script
/// are refused in its first line.
fn is_halfway(error: &[u8]) -> bool {
    let has = |part: &[u8]| error.windows(part.len()).any(|text| text == part);
    error.starts_with(b"FENCE ")
        || has(b"on @user_script:") && !error.ends_with(b"on @user_script:1.")
}

fn word<'a>(input: &mut Input<'a>) -> &'a [u8] {
    let byte = usize::from(input.byte().unwrap_or(0));
    WORDS
        .get(byte)
        .copied()
        .unwrap_or_else(|| input.bytes(byte % 32))
}

impl Node {
    fn contents(&self) -> Contents {
        let keys = self.keyspace.live_keys(self.now);
        keys.map(|key| {
            let value = key.value.map(<[u8]>::to_vec);
            ((key.database, key.key.to_vec()), (value, key.remaining))
        })
        .collect()
    }

    fn wait(&mut self, pause: Duration) {
        let before = self.contents();
        self.now = self.now.after(pause);
        self.keyspace.expire_tracked(self.now);
        self.check_pushes();
        let after = self.contents();
        for (key, (value, remaining)) in &before {
            // The model counts in whole milliseconds.
            let is_due = remaining.is_some_and(|left| left < pause + MILLISECOND);
            match after.get(key) {
                Some((value_now, remaining_now)) => {
                    assert_eq!(
                        (value, remaining.is_some()),
                        (value_now, remaining_now.is_some())
                    );
                    assert!(remaining_now <= remaining, "it lives longer");
                }
                None => assert!(is_due, "gone before its time"),
            }
        }
        assert!(
            after.keys().all(|key| before.contains_key(key)),
            "it has come back"
        );
    }

    fn restart(&mut self, keep_data: bool) {
        let before = self.contents();
        self.keyspace.restart(self.now, keep_data, "1".repeat(40));
        self.connections = [self.keyspace.connect(), self.keyspace.connect()];
        assert_eq!(
            self.contents(),
            if keep_data { before } else { Contents::new() }
        );
    }

    fn check_pushes(&mut self) {
        while let Some((id, message)) = self.keyspace.poll_push() {
            assert!(
                self.connections
                    .iter()
                    .any(|connection| connection.id == id)
            );
            let mut bytes = Vec::new();
            message.encode(Protocol::Resp3, &mut bytes);
            let used = decode(&bytes).ok().flatten().map(|(_, used)| used);
            assert_eq!(used, Some(bytes.len()), "{message:?}");
        }
    }

    fn run(&mut self, who: usize, words: &[&[u8]]) {
        let before = self.contents();
        let connection = &mut self.connections[who];
        let may = connection.is_authenticated;
        let reply = self.keyspace.execute(self.now, connection, words);
        let may_now = connection.is_authenticated;
        self.check_pushes();
        let after = self.contents();

        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut bytes = Vec::new();
            reply.encode(protocol, &mut bytes);
            match decode(&bytes) {
                Ok(Some((decoded, used))) => {
                    assert_eq!(used, bytes.len(), "{words:?}: one reply");
                    let is_error = matches!(decoded, Reply::Error(_));
                    assert_eq!(is_error, matches!(reply, OwnedReply::Error(_)));
                }
                // It quotes the source of a script, longer than a line that a client accepts.
                Err(_) if matches!(&reply, OwnedReply::Error(text) if text.len() > LINE_MAX) => {}
                other => panic!("{words:?} is answered with {reply:?}, which is {other:?}"),
            }
        }
        let is_refused = matches!(&reply, OwnedReply::Error(text) if !is_halfway(text));
        if is_refused || !(may && may_now) {
            assert_eq!(before, after, "{words:?} was refused");
        }
        let is_plant = words
            .first()
            .is_some_and(|verb| verb.eq_ignore_ascii_case(b"SET"))
            && words
                .iter()
                .skip(3)
                .any(|word| word.eq_ignore_ascii_case(b"NX"));
        if is_plant {
            let kept = before
                .iter()
                .all(|(key, entry)| after.get(key) == Some(entry));
            assert!(kept, "{words:?} touched a key that was there");
        }
    }
}
