//! Sessions and rounds: any requests, replies, disconnections and waits in any order.
//!
//! The input is a list of events of one or a few bytes each. Properties: nothing panics; unanswered
//! commands stay within their limits, and so do the pending releases of a failing node; each waiter
//! gets exactly one outcome, unless the wait was cancelled; a vote belongs to the command that it
//! is the reply to; a push is the reply to none; rounds that wait for reservations end when they
//! must; and no command is written before the reply to the greeting.

#[path = "session/conversation.rs"]
mod conversation;
#[path = "session/rounds.rs"]
mod rounds;

use super::input::Input;
use redlatch_protocol::engine::Ttl;
use redlatch_protocol::engine::{
    Before, Claim, Command, Drift, Keep, LockAttributes, LockId, NodeSet,
};
use redlatch_protocol::engine::{
    ClaimTime, Ping, Predecessor, QueueEntry, Removal, Request, Rules, Share, Token,
};
use redlatch_protocol::inspect::Listing;
use redlatch_protocol::time::Time;
use redlatch_registers::{Ballot, MarkStep, RegisterCommand, RegisterKeys, RegisterRequest};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Replies of a peer, valid or not. `:Y` stands for the number with which a script says yes, and
/// `:N` for that with which it says no.
const REPLIES: [&str; 18] = [
    "+OK\r\n",
    "$-1\r\n",
    ":Y\r\n",
    ":N\r\n",
    "+PONG\r\n",
    "-NOSCRIPT No matching script.\r\n",
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-NOAUTH Authentication required.\r\n",
    "%0\r\n",
    "$25\r\nrun_id:a\r\nredis_version:7\r\n",
    "$37\r\nrun_id:b\r\nuptime_in_seconds:99\r\nx:y\r\n\r\n",
    "*3\r\n:Y\r\n:0\r\n:0\r\n",
    "*3\r\n:Y\r\n:1\r\n:2\r\n",
    "-WRONGTYPE a list\r\n",
    "_\r\n",
    "*2\r\n$4\r\nsave\r\n$0\r\n\r\n",
    "*2\r\n$10\r\n1700000000\r\n$1\r\n7\r\n",
];

/// Replies to a waiter, valid or not.
const QUEUE_REPLIES: [&str; 7] = [
    "*6\r\n:Y\r\n:7\r\n:0\r\n:1\r\n:900\r\n:1\r\n",
    "*6\r\n:Y\r\n:8\r\n:1\r\n:0\r\n:-2\r\n:2\r\n",
    "*6\r\n:Y\r\n:8\r\n:2\r\n:0\r\n:1\r\n:2\r\n",
    ":Y\r\n",
    "+OK\r\n",
    "-NOPERM this user has no permissions to run the 'zadd' command\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
];

/// Replies about a share, valid or not: of a reader, and of three permits, the last of which does
/// not exist.
const SHARE_REPLIES: [&str; 4] = [
    "*4\r\n:Y\r\n:1\r\n:0\r\n:-1\r\n",
    "*4\r\n:Y\r\n:1\r\n:9\r\n:0\r\n",
    "*4\r\n:Y\r\n:1\r\n:0\r\n:1\r\n",
    "*4\r\n:Y\r\n:1\r\n:0\r\n:3\r\n",
];

/// How many permits there are.
const PERMITS: u32 = 3;

/// Messages that a node may send at any time.
const PUSHES: [&str; 2] = [
    ">2\r\n+invalidate\r\n_\r\n",
    ">2\r\n$10\r\ninvalidate\r\n_\r\n",
];

/// A push message that names the waiter of this request, and is none that the session expects.
fn push(serial: u64) -> Vec<u8> {
    let before = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$37\r\nkk:redlatch:wait:";
    let waiter = waiter(serial);
    [&before[..], waiter.as_bytes(), b"\r\n"].concat()
}

/// Keys, short and long. Made once, because some requests are made by the hundred.
static KEYS: LazyLock<[Arc<[u8]>; 4]> =
    LazyLock::new(|| [3, 3, 1_000, 60_000].map(|length| Arc::from(vec![b'k'; length])));

/// A reply to the command of this number.
fn reply(text: &str, number: i64) -> String {
    text.replace(":Y", &format!(":{number}"))
        .replace(":N", &format!(":{}", -number))
}

/// Panics unless the events in `data` have the right effects.
pub(crate) fn check(data: &[u8]) {
    match data.split_first() {
        Some((first, rest)) if first % 2 == 0 => conversation::check(Input(rest)),
        Some((_, rest)) => rounds::check(Input(rest)),
        None => {}
    }
}

/// The share that a request of this kind is about, if it is not about the exclusive lock.
fn share(kind: u8) -> Option<Share> {
    // Before it is granted, a permit has no number.
    let number = matches!(kind % 6, 1 | 4).then_some(1);
    match kind / 6 % 10 {
        4 => Some(Share::Reader),
        9 => Some(Share::Permit {
            of: PERMITS,
            number,
        }),
        _ => None,
    }
}

/// A request with `serial` in its token.
fn request(kind: u8, serial: u64, now: Time) -> Request {
    let rules = Rules::new(3, Drift::from_factor(0.01).expect("a usual factor"));
    let ttl = [1, 40, 1_000, 60_000][usize::from(kind / 6) % 4];
    let ttl = Ttl::from_duration(Duration::from_millis(ttl)).expect("a usual ttl");
    let key = Arc::clone(&KEYS[usize::from(kind / 64)]);
    let attributes = share(kind).map(|share| {
        Arc::new(LockAttributes {
            share: Some(share),
            ..LockAttributes::default()
        })
    });
    let is_shared = attributes.is_some();
    let lock = LockId {
        key,
        token: token(serial),
        attributes,
    };
    let leaver = (kind / 64 == 1).then(|| waiter(serial));
    let claim = |lock, before| {
        Command::Claim(Claim {
            lock,
            ttl,
            fence: 0,
            before,
        })
    };
    let removal = |lock, is_awaited| {
        Command::Remove(Removal {
            lock,
            ttl,
            keep_for: None,
            waiter: leaver,
            is_awaited,
        })
    };
    let command = match kind % 6 {
        // Shares are not handed off.
        0 if kind / 64 == 1 && !is_shared => {
            let before = Predecessor {
                token: token(serial.wrapping_sub(1)),
                attributes: None,
                waiter: None,
                ttl_longest: ttl,
            };
            claim(lock, Before::Predecessor(before))
        }
        0 => claim(lock, Before::Nothing),
        1 | 4 => Command::Keep(Keep {
            lock,
            ttl,
            restores: kind % 6 == 4,
            reclaims: false,
            is_resumed: false,
        }),
        2 => removal(lock, true),
        3 => removal(lock, false),
        _ if kind / 64 == 2 => claim(lock, Before::Turn(waiter(serial))),
        _ => rarer(kind, serial, lock, ttl),
    };
    let mut request = Request::to_all(&rules, now, command);
    request.nodes = if kind % 7 == 6 {
        NodeSet::all(1)
    } else {
        NodeSet::all(3)
    };
    request
}

/// What is neither a vote on a lock nor its removal.
fn rarer(kind: u8, serial: u64, lock: LockId, ttl: Ttl) -> Command {
    let is_odd = kind / 6 % 2 == 1;
    match kind / 64 {
        0 if is_odd => Command::Custom(Arc::new(Listing {
            pattern: lock.key,
            cursor: serial,
            count: 1,
            registers: false,
            tag: Arc::default(),
        })),
        1 => Command::Queue(queue_entry(lock, ttl, waiter(serial), u64::from(is_odd))),
        3 if is_odd => register(serial),
        part => Command::Ping(Ping { asks: part == 3 }),
    }
}

fn queue_entry(lock: LockId, ttl: Ttl, waiter: Token, number: u64) -> QueueEntry {
    QueueEntry {
        lock,
        ttl,
        waiter,
        number,
        since: 0,
        lease: ttl,
        lease_in_front: ttl,
        claim: ClaimTime {
            notified: ttl,
            asking: ttl,
        },
        channel: None,
    }
}

/// A request about a register.
fn register(serial: u64) -> Command {
    let ballot = |number| Ballot::new(number, token(serial)).expect("a small number");
    let command = match serial % 6 {
        0 => RegisterCommand::Read { watcher: None },
        1 => RegisterCommand::Prepare(ballot(serial % 8)),
        2 => RegisterCommand::Accept {
            ballot: ballot(serial % 8),
            next: ballot(serial % 8 + 1),
            value: Arc::from([]),
        },
        3 => RegisterCommand::Collect(Some(ballot(serial % 8))),
        4 => RegisterCommand::Mark(MarkStep::Look),
        _ => RegisterCommand::Mark(MarkStep::Join {
            seen: Arc::from([]),
        }),
    };
    let keys = RegisterKeys::new(b"", b"key");
    let epoch = Arc::from(&b"epoch "[..]);
    let run_id = Arc::from("");
    Command::Custom(Arc::new(RegisterRequest {
        keys,
        epoch,
        run_id,
        command,
    }))
}

fn token(serial: u64) -> Token {
    let mut token = [0; Token::LEN];
    token[..8].copy_from_slice(&serial.to_be_bytes());
    Token::new(token)
}

/// The name of the waiter of this request, which it shares with a few others. No request's token is
/// like it.
fn waiter(serial: u64) -> Token {
    let mut name = [b'w'; Token::LEN];
    name[..8].copy_from_slice(&(serial / 4).to_be_bytes());
    Token::new(name)
}

/// Is this the token of a request?
fn is_token(word: &[u8]) -> bool {
    word.len() == Token::LEN && word[Token::LEN - 1] != b'w'
}

/// The duration that a byte stands for: from zero to a minute.
fn pause(byte: u8) -> Duration {
    Duration::from_micros(1 << (byte % 27))
}
