//! A node that runs the scripts of the library: an embedded keyspace, to which the commands of both
//! searches are given, each by its `serving.rs`.

use crate::air::Word;
use crate::node::Outcome;
use crate::place::Place;
use crate::scheme::Scheme;
use crate::time::Time;
use crate::token::Token;
use redlatch::internal;
use redlatch::internal::embedded::{ConnectionState, Keyspace, Options, OwnedReply};
use redlatch::internal::node::script::{self, Script};

pub(crate) const KEY: &[u8] = b"k";

/// How long a reservation lasts, in milliseconds, and how much of it a step lets pass.
pub(crate) const CLAIM: u64 = 100;

/// How long keys are kept after the time of a reservation.
const GRACE: u64 = 1000;

/// Longer than any walk takes.
pub(crate) const LONG: &str = "1000000000";

/// A node with a connection for each client.
pub(crate) struct Server {
    keyspace: Keyspace,
    links: Vec<ConnectionState>,
    /// For commands that arrive after their connection has ended.
    stray: ConnectionState,
    pub(crate) now: u64,
    claim: u64,
    is_mute: bool,
}

impl Server {
    pub(crate) fn new(scheme: &Scheme) -> Self {
        // Its wall clock shows the time of the model.
        let options = Options::new().wall_clock(internal::Time::from_millis(0), 0);
        let mut keyspace = Keyspace::new(options);
        let stray = keyspace.connect();
        let is_mute = scheme.is_mute();
        let claim = if is_mute { 2 * CLAIM } else { CLAIM };
        let mut server = Self { keyspace, links: Vec::new(), stray, now: 1_000, claim, is_mute };
        for script in script::ALL {
            server.ask(None, &[b"SCRIPT", b"LOAD", script.source.as_bytes()]);
        }
        for client in 0..scheme.clients {
            let link = server.keyspace.connect();
            server.links.push(link);
            server.connect(client);
        }
        server
    }

    pub(crate) fn ask(&mut self, client: Option<usize>, words: &[&[u8]]) -> OwnedReply {
        let now = internal::Time::from_millis(self.now);
        let session = client.map_or(&mut self.stray, |client| &mut self.links[client]);
        self.keyspace.execute(now, session, words)
    }

    pub(crate) fn call(
        &mut self,
        client: Option<usize>,
        script: Script,
        words: &[&[u8]],
    ) -> OwnedReply {
        let head: [&[u8]; 4] = [b"EVALSHA", script.sha1.as_bytes(), b"1", KEY];
        self.ask(client, &[&head, words, &[b"7"]].concat())
    }

    /// The connection of this client has ended, and there is a new one.
    pub(crate) fn connect(&mut self, client: usize) {
        self.keyspace.disconnect(&self.links[client]);
        self.links[client] = self.keyspace.connect();
        self.ask(Some(client), &[b"HELLO", b"3"]);
    }

    /// Joins the queue, or renews a place; `wish` is how the entry says what is waited for.
    pub(crate) fn queue(
        &mut self,
        client: Option<usize>,
        (id, wish): (Token, &str),
        number: u8,
        withdraw: Option<Token>,
    ) -> Outcome {
        let channel = format!("redlatch:{:016x}", id.client);
        if let Some(client) = client.filter(|_| !self.is_mute) {
            self.ask(Some(client), &[b"SUBSCRIBE", channel.as_bytes()]);
        }
        let channel = if self.is_mute { "" } else { &channel };
        let entry = format!("12{wish} {} {LONG} {channel} owner", self.claim);
        let (number, withdraw) = (number.to_string(), withdraw.map(name).unwrap_or_default());
        let words: [&[u8]; 5] =
            [&name(id), number.as_bytes(), &withdraw, entry.as_bytes(), LONG.as_bytes()];
        let reply = self.call(client, script::QUEUE, &words);
        let OwnedReply::Array(elements) = &reply else { panic!("{reply:?}") };
        let numbers = elements.iter().map(|element| match element {
            OwnedReply::Integer(number) => *number,
            other => panic!("{other:?}"),
        });
        let numbers: Vec<i64> = numbers.collect();
        let [7, number, before, flags, left, _] = numbers[..] else { panic!("{reply:?}") };
        let is_mine = flags & 1 == 1;
        let ends = !is_mine && (0..=CLAIM as i64 * 2).contains(&left);
        let (number, before) = (number as u8, before as u8);
        Outcome::Place(Place { number, before, is_mine, was_out: flags & 2 == 2, ends })
    }

    /// What the node has told since this was called last.
    pub(crate) fn told(&mut self) -> Vec<(Token, Word)> {
        let mut told = Vec::new();
        while let Some((_, message)) = self.keyspace.poll_push() {
            let OwnedReply::Push(parts) = message else { continue };
            let [.., OwnedReply::Bulk(text)] = &parts[..] else { continue };
            let word = match &text[20..] {
                b"r" => Word::Reserved,
                b"w0" => Word::AskNow,
                _ => Word::AskLater,
            };
            told.push((token(&text[..20]), word));
        }
        told
    }

    /// Lets time pass so that a reservation is over, or what is kept after one.
    pub(crate) fn pass(&mut self, is_over: bool) {
        // The model keeps this number as long as the queue.
        self.ask(None, &[b"PEXPIRE", b"k:redlatch:floor", LONG.as_bytes()]);
        self.now += 1 + if is_over { GRACE } else { CLAIM };
    }

    pub(crate) fn end_lease(&mut self, id: Token) {
        self.ask(None, &[b"DEL", &lease(id)]);
    }

    pub(crate) fn lose_queue(&mut self) {
        let waiters = self.members(b"k:redlatch:queue").into_iter();
        waiters.for_each(|(waiter, _)| self.end_lease(token(&waiter)));
        for key in ["k:redlatch:queue", "k:redlatch:called", "k:redlatch:floor"] {
            self.ask(None, &[b"DEL", key.as_bytes()]);
        }
        if self.value().starts_with(b"redlatch:reserved:") {
            self.ask(None, &[b"DEL", KEY]);
        }
    }

    pub(crate) fn lose_data(&mut self) {
        self.ask(None, &[b"FLUSHALL"]);
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let now = internal::Time::from_millis(self.now);
        let found = self.keyspace.live_key(now, 0, KEY).and_then(|key| key.value);
        found.map(<[u8]>::to_vec).unwrap_or_default()
    }

    /// The members of a sorted set, in its order, and their scores.
    pub(crate) fn members(&self, key: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let now = internal::Time::from_millis(self.now);
        let members = self.keyspace.live_members(now, 0, key);
        members.map(|(member, score)| (member.to_vec(), score)).collect()
    }

    /// The entry of a waiter, if it has not expired.
    pub(crate) fn entry(&self, id: Token) -> Option<&[u8]> {
        let now = internal::Time::from_millis(self.now);
        self.keyspace.live_key(now, 0, &lease(id)).and_then(|entry| entry.value)
    }

    /// The time of the lock's key after which it is passed on. How much of it is left is not
    /// compared.
    pub(crate) fn time(&self, grace: &[u8]) -> Time {
        let now = internal::Time::from_millis(self.now);
        let left = self.keyspace.live_key(now, 0, KEY).and_then(|key| key.remaining);
        let left = left.map_or(0, |left| left.as_millis());
        let has_grace = grace == b"1000";
        Time { has_grace, is_over: has_grace && left <= GRACE.into(), ..Time::default() }
    }
}

/// The name of a waiter, or the value of an attempt. They sort as tokens do.
pub(crate) fn name(token: Token) -> [u8; 20] {
    let mut name = [b'-'; 20];
    let text = format!("c{:02}a{:05}", token.client, token.attempt);
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

pub(crate) fn token(name: &[u8]) -> Token {
    let text = std::str::from_utf8(name).expect("a name of ours");
    let number = |digits: &str| digits.parse().expect("a name of ours");
    Token { client: number(&text[1..3]) as u8, attempt: number(&text[4..9]) }
}

/// The value of a key that is reserved for this waiter.
pub(crate) fn reservation(id: Token) -> Vec<u8> {
    [b"redlatch:reserved:".as_slice(), &name(id)].concat()
}

fn lease(id: Token) -> Vec<u8> {
    [b"k:redlatch:lease:".as_slice(), &name(id)].concat()
}
