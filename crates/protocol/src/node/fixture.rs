//! Shared by the tests of this layer: requests, the greeting of a server, and sessions that are fed
//! with literal bytes and times.

use super::{Answer, NodeError, Session, SessionEvent, SessionOptions, SharedRequest, Ticket};
use crate::engine::{
    Before, Claim, Command, Fence, Keep, ListenStep, LockAttributes, LockId, Node, Ping,
    Predecessor, QueueWait,
};
use crate::engine::{
    CustomCommand, Listen, NoVote, QueueEntry, Removal, Request, Rules, RunScript, Said, Script,
    Share, Tally, Token, Ttl, Verb, Vote,
};
use crate::resp::Reply;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The byte that the name of the waiter in a request for its turn consists of.
pub(super) const WAITER: u8 = 200;

pub(super) fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

pub(super) fn ttl(millis: u64) -> Ttl {
    Ttl::from_duration(Duration::from_millis(millis)).expect("a ttl that can be sent")
}

pub(super) fn ticket(serial: u64) -> Ticket {
    Ticket { round: 0, serial }
}

/// A request about the lock `key` of the token that is made of twenty times `owner`, to three
/// nodes, with a ttl of a second.
pub(super) fn request(verb: Verb, owner: u8, now: Time) -> Request {
    about(verb, lock(owner), now)
}

/// The lock `key` of the token that is made of twenty times `owner`.
pub(super) fn lock(owner: u8) -> LockId {
    LockId {
        key: Arc::from(&b"key"[..]),
        token: Token::new([owner; Token::LEN]),
        attributes: None,
    }
}

/// This share of the lock `key`.
pub(super) fn share(owner: u8, share: Share) -> LockId {
    let attributes = LockAttributes {
        share: Some(share),
        ..LockAttributes::default()
    };
    LockId {
        attributes: Some(Arc::new(attributes)),
        ..lock(owner)
    }
}

/// A request about this lock, to three nodes, with a ttl of a second. A handoff is from a lock of
/// the token that is made of zeros.
pub(super) fn about(verb: Verb, lock: LockId, now: Time) -> Request {
    let rules = Rules::new(
        3,
        crate::engine::Drift::from_factor(0.01).expect("a usual factor"),
    );
    let key = Arc::clone(&lock.key);
    let ttl = ttl(1_000);
    let claim = |lock, before| {
        Command::Claim(Claim {
            lock,
            ttl,
            fence: 50,
            before,
        })
    };
    let removal = |lock, is_awaited| {
        Command::Remove(Removal {
            lock,
            ttl,
            keep_for: None,
            waiter: None,
            is_awaited,
        })
    };
    let command = match verb {
        Verb::Acquire => claim(lock, Before::Nothing),
        Verb::Handoff => {
            let before = Predecessor {
                token: Token::new([0; Token::LEN]),
                attributes: None,
                waiter: None,
                ttl_longest: ttl,
            };
            claim(lock, Before::Predecessor(before))
        }
        Verb::Turn => claim(lock, Before::Turn(Token::new([WAITER; Token::LEN]))),
        Verb::Extend | Verb::Restore => Command::Keep(Keep {
            lock,
            ttl,
            restores: matches!(verb, Verb::Restore),
            reclaims: false,
            is_resumed: false,
        }),
        Verb::Release => removal(lock, true),
        Verb::Undo => removal(lock, false),
        Verb::Fence => Command::Fence(Fence { lock, fence: 50 }),
        Verb::Ping => Command::Ping(Ping { asks: false }),
        #[cfg(feature = "diagnostics")]
        Verb::Ask => Command::Ask(crate::engine::Question::Time),
        Verb::Queue => Command::Queue(queue_entry(lock, rules.claim_time(Duration::ZERO))),
        Verb::Listen => Command::Listen(Listen {
            key,
            step: ListenStep::Read(lock.token),
        }),
        #[cfg(feature = "groups")]
        Verb::Reign => Command::Reign(crate::engine::ReignQuestion {
            key,
            acknowledged: None,
            step: crate::engine::ReignStep::Check,
        }),
        Verb::Custom => Command::Custom(Arc::new(Probe {
            key,
            ..Probe::default()
        })),
    };
    Request::to_all(&rules, now, command)
}

fn queue_entry(lock: LockId, claim: crate::engine::ClaimTime) -> QueueEntry {
    let ttl = ttl(1_000);
    QueueEntry {
        waiter: lock.token,
        lock,
        ttl,
        number: 0,
        since: 7,
        lease: ttl,
        lease_in_front: ttl,
        claim,
        channel: None,
    }
}

/// A custom command that a node has carried out when it answers its number in a list.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) key: Arc<[u8]>,
    pub(super) watcher: Option<Token>,
    pub(super) is_look: bool,
    pub(super) is_accept: bool,
    /// Is every node waited for?
    pub(super) asks_all: bool,
    /// Does another one follow on all nodes?
    pub(super) is_followed: bool,
}

impl Default for Probe {
    fn default() -> Self {
        let key = Arc::from(&b"key"[..]);
        Self {
            key,
            watcher: None,
            is_look: false,
            is_accept: false,
            asks_all: false,
            is_followed: false,
        }
    }
}

impl Probe {
    /// The request to three nodes.
    pub(super) fn request(self, now: Time) -> Request {
        Request {
            command: Command::Custom(Arc::new(self)),
            ..request(Verb::Custom, 1, now)
        }
    }
}

impl CustomCommand for Probe {
    fn key(&self) -> &Arc<[u8]> {
        &self.key
    }

    fn watcher(&self) -> Option<Token> {
        self.watcher
    }

    fn is_look(&self) -> bool {
        self.is_look
    }

    fn script(&self) -> Script {
        Script {
            source: "return {tonumber(ARGV[1])}",
            sha1: "digest",
            number: u32::BITS - 1,
        }
    }

    fn call(&self, run: &mut RunScript<'_>) {
        run(&[&self.key], &[]);
    }

    fn read(&self, number: i64, reply: &Reply<'_>) -> Option<Result<(Vote, Said), NoVote>> {
        let Reply::Array(list) = reply else {
            return None;
        };
        let is_answer = list.iter().next() == Some(Reply::Integer(number));
        is_answer.then(|| Ok((Vote::Granted, Said::new(number))))
    }

    fn is_accept(&self) -> bool {
        self.is_accept
    }

    fn waits_for_more(&self, _: &[Option<Said>], tally: &Tally, awaited: usize) -> bool {
        self.asks_all || tally.granted.len() < 2 && awaited > 0
    }

    fn could_end(&self, said: &[Option<Said>]) -> bool {
        said.iter().flatten().count() >= 2
    }

    fn is_followed(&self) -> bool {
        self.is_followed
    }

    fn follow_up(&self, _: &[Option<Said>]) -> Option<Arc<dyn CustomCommand>> {
        Some(Arc::new(Self::default()))
    }
}

/// The wait of a waiter that watches no key, for 50 ms.
pub(super) fn queue_wait(waiter: u8, now: Time) -> QueueWait {
    let waiter = Token::new([waiter; Token::LEN]);
    let until = now.after(Duration::from_millis(50));
    QueueWait {
        key: Arc::from(&b"key"[..]),
        waiter,
        watches: false,
        until,
    }
}

/// The request by which the lock of `before` becomes that of `owner`.
pub(super) fn handoff(before: u8, owner: u8, now: Time) -> Request {
    taking_over(before, request(Verb::Handoff, owner, now))
}

/// The same of fenced locks.
pub(super) fn fenced_handoff(before: u8, owner: u8, now: Time) -> Request {
    taking_over(before, fenced(Verb::Handoff, owner, now))
}

fn taking_over(before: u8, mut request: Request) -> Request {
    request.predecessor_mut().token = Token::new([before; Token::LEN]);
    request
}

/// A request about a fenced lock, whose counters have a ttl of an hour.
pub(super) fn fenced(verb: Verb, owner: u8, now: Time) -> Request {
    let attributes = LockAttributes {
        fence: Some(ttl(3_600_000)),
        ..LockAttributes::default()
    };
    about(
        verb,
        LockId {
            attributes: Some(Arc::new(attributes)),
            ..lock(owner)
        },
        now,
    )
}

/// The removal of a key of this many bytes.
pub(super) fn removal(key_length: usize) -> Request {
    long(Verb::Undo, key_length, at(0))
}

/// A request about a key of this many bytes.
pub(super) fn long(verb: Verb, key_length: usize, now: Time) -> Request {
    about(
        verb,
        LockId {
            key: Arc::from(vec![b'k'; key_length]),
            ..lock(1)
        },
        now,
    )
}

/// The answer to `INFO server` of a server that was started so long ago.
pub(super) fn info(run_id: &str, uptime: u64) -> String {
    let text = format!(
        "# Server\r\nredis_version:7.0.15\r\nrun_id:{run_id}\r\nuptime_in_seconds:{uptime}\r\n"
    );
    format!("${}\r\n{text}\r\n", text.len())
}

/// The answers to a greeting without password, database and name.
pub(super) fn greeting(run_id: &str, uptime: u64) -> String {
    format!(
        "%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n{}",
        info(run_id, uptime)
    )
}

/// As `greeting`, from a server that reports the connection's id.
pub(super) fn numbered_greeting(run_id: &str, connection: u64) -> String {
    let hello = format!("%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:{connection}\r\n");
    format!("{hello}{}", info(run_id, 1_000))
}

/// A session whose peer's replies are written in the test.
#[derive(Debug)]
pub(super) struct ScriptedSession {
    pub(super) session: Session,
    pub(super) now: Time,
    /// The bytes that were written and not yet read by the test.
    sent: Vec<u8>,
}

impl ScriptedSession {
    pub(super) fn new(options: SessionOptions) -> Self {
        Self {
            session: Session::new(options),
            now: at(0),
            sent: Vec::new(),
        }
    }

    /// Connected and greeted, with nothing left to be written.
    pub(super) fn ready() -> Self {
        let mut talk = Self::new(SessionOptions::new("redis://node", 7));
        talk.connect();
        talk.hear(greeting("a", 1_000));
        talk
    }

    /// Connects, and swallows the greeting.
    pub(super) fn connect(&mut self) -> String {
        self.session.connecting(self.now, super::Phase::Connecting);
        self.session.connected(self.now);
        self.written()
    }

    pub(super) fn send(&mut self, serial: u64, verb: Verb) {
        self.session.send(
            self.now,
            Some(ticket(serial)),
            request(verb, serial as u8, self.now),
        );
    }

    /// Sends a request that no round waits for.
    pub(super) fn post(&mut self, owner: u8, verb: Verb) {
        self.session
            .send(self.now, None, request(verb, owner, self.now));
    }

    /// Receives this text after all pending output has been written.
    pub(super) fn hear(&mut self, text: impl AsRef<[u8]>) {
        write(&mut self.session, &mut self.sent);
        self.session.received(self.now, text.as_ref());
    }

    pub(super) fn lose(&mut self) {
        self.sent.clear();
        self.session
            .closed(self.now, NodeError::Disconnected("gone".to_owned()));
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
        self.session.tick(self.now);
    }

    /// The bytes written since the last call.
    pub(super) fn written(&mut self) -> String {
        write(&mut self.session, &mut self.sent);
        String::from_utf8_lossy(&std::mem::take(&mut self.sent)).into_owned()
    }

    /// The commands written since the last call, each by its verb and its token.
    pub(super) fn commands(&mut self) -> Vec<String> {
        self.words().iter().map(|words| name_of(words)).collect()
    }

    /// The same, by their words.
    pub(super) fn words(&mut self) -> Vec<Vec<Vec<u8>>> {
        write(&mut self.session, &mut self.sent);
        words(&std::mem::take(&mut self.sent))
    }

    pub(super) fn events(&mut self) -> Vec<SessionEvent> {
        std::iter::from_fn(|| self.session.poll()).collect()
    }

    /// The answers, of all that has happened.
    pub(super) fn answers(&mut self) -> Vec<Answer> {
        let answer = |event| match event {
            SessionEvent::Answer(answer) => Some(answer),
            _ => None,
        };
        self.events().into_iter().filter_map(answer).collect()
    }

    /// The answers by serial number and vote.
    pub(super) fn votes(&mut self) -> Vec<(u64, Vote)> {
        self.answers()
            .iter()
            .map(|answer| (answer.ticket.serial, answer.reply.vote))
            .collect()
    }

    /// The error of the only answer.
    pub(super) fn problem(&mut self) -> NodeError {
        let mut answers = self.answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        let answer = answers.remove(0);
        assert_eq!(answer.reply.vote, Vote::Failed);
        answer.reply.problem.expect("a failed vote has an error")
    }
}

/// Writes all pending output.
pub(super) fn write(session: &mut Session, sent: &mut Vec<u8>) {
    session.about_to_write();
    sent.extend_from_slice(session.output());
    let count = session.output().len();
    session.wrote(count);
}

/// `SET 1`, `EVAL 2`: names and tokens of the commands in these bytes.
pub(super) fn commands(bytes: &[u8]) -> Vec<String> {
    words(bytes).iter().map(|words| name_of(words)).collect()
}

fn name_of(words: &[Vec<u8>]) -> String {
    let token = words.iter().find(|word| word.len() == Token::LEN);
    let name = String::from_utf8_lossy(&words[0]);
    token.map_or(name.to_string(), |token| format!("{name} {}", token[0]))
}

/// The commands in these bytes, as words.
fn words(mut bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    use crate::resp::{Reply, decode};
    let mut found = Vec::new();
    while let Ok(Some((Reply::Array(elements), used))) = decode(bytes) {
        let word = |element| match element {
            Reply::Bulk(word) => word.to_vec(),
            other => panic!("{other:?}"),
        };
        found.push(elements.iter().map(word).collect());
        bytes = &bytes[used..];
    }
    assert!(bytes.is_empty(), "no half commands");
    found
}

pub(super) fn node(index: usize) -> Node {
    Node::new(index)
}

impl From<&Request> for SharedRequest {
    fn from(request: &Request) -> Self {
        request.clone().into()
    }
}
