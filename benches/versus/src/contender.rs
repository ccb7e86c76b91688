//! Clients that compete for one lock: each is a process of its own, with connections of its own,
//! and writes down when it asked for the lock, got it and released it.

use crate::child::{self, ChildProcess};
use crate::handoffs::{Record, nanos, now};
use crate::peers::Peer;
use crate::work::Blocking;
use std::thread;
use std::time::Duration;

/// The first argument of a program that is to be a contender.
pub const SUBCOMMAND: &str = "contender";

/// What a contender does: from `start` on, it asks for the lock, holds it, releases it, pauses, and
/// begins again, until `end` or until it has asked `asks` times.
#[derive(Clone, Debug)]
pub struct Order {
    pub resource: String,
    /// On the clock of [`now`], as is `end`.
    pub start: u64,
    /// No request begins later. One that waits is waited for.
    pub end: u64,
    pub hold: Duration,
    /// The longest pause after a release; each is random.
    pub pause: Duration,
    /// The least time from one request to the next.
    pub every: Duration,
    pub asks: usize,
}

/// A contender's process, as seen from outside.
pub struct Contender(ChildProcess);

impl Contender {
    /// Starts a client of these servers and waits until it has connected.
    pub fn start_all(count: usize, peer: Peer, urls: &[String]) -> Vec<Self> {
        let arguments = [&[peer.word()], urls].concat();
        let start = |_| match peer.script(urls) {
            Some(script) => Self(ChildProcess::start_command(script)),
            None => Self(ChildProcess::start(SUBCOMMAND, &arguments, None)),
        };
        let mut all: Vec<_> = (0..count).map(start).collect();
        for Self(process) in &mut all {
            assert_eq!(process.answer(), "ready", "the contender connects");
        }
        all
    }

    /// Begins what is ordered. Its end is awaited with [`finish`](Self::finish).
    pub fn begin(&mut self, order: &Order) {
        self.0.order(order.to_text());
    }

    /// The locks that it had, in order.
    pub fn finish(&mut self) -> Vec<Record> {
        let line = self.0.answer();
        let records = line.split(' ').filter(|word| !word.is_empty()).map(Record::from_text);
        let records: Option<_> = records.collect();
        records.expect("the contender sends a result; its output above says why it sent none")
    }
}

impl Order {
    fn to_text(&self) -> String {
        let [hold, pause, every] = [self.hold, self.pause, self.every].map(nanos);
        let Self { resource, start, end, asks, .. } = self;
        format!("{resource} {start} {end} {hold} {pause} {every} {asks}")
    }

    fn from_text(text: &str) -> Option<Self> {
        let (resource, numbers) = text.split_once(' ')?;
        let numbers: Option<Vec<u64>> = numbers.split(' ').map(|word| word.parse().ok()).collect();
        let [start, end, hold, pause, every, asks] = numbers?[..] else { return None };
        Some(Self {
            resource: resource.to_owned(),
            start,
            end,
            hold: Duration::from_nanos(hold),
            pause: Duration::from_nanos(pause),
            every: Duration::from_nanos(every),
            asks: usize::try_from(asks).ok()?,
        })
    }
}

/// Is a contender, until there are no more orders.
pub fn serve(arguments: &[String]) -> Result<(), String> {
    let by_itself = "this is started by the program itself";
    let (peer, urls) = arguments.split_first().ok_or(by_itself)?;
    let mut contend = Peer::from_word(peer).and_then(|peer| peer.contend(urls)).ok_or(by_itself)?;
    child::say("ready")?;
    child::serve(|line| {
        let order = Order::from_text(line).ok_or_else(|| format!("{line:?} is no order"))?;
        let records: Vec<_> = contend(&order).into_iter().map(Record::to_text).collect();
        Ok(records.join(" "))
    })
}

/// Carries out an order.
pub fn contend<B: Blocking>(peer: &B, order: &Order) -> Vec<Record> {
    let mut random = Random(now() ^ (u64::from(std::process::id()) << 32));
    let mut records = Vec::new();
    thread::sleep(Duration::from_nanos(order.start.saturating_sub(now())));
    let mut asked = now();
    while asked < order.end && records.len() < order.asks {
        let before = peer.attempts();
        let held = peer.acquire(&order.resource, true);
        let granted = now();
        let (permit, attempts) = (peer.permit(&held), peer.attempts() - before);
        if !order.hold.is_zero() {
            thread::sleep(order.hold);
        }
        let releasing = now();
        peer.release(held);
        let released = now();
        records.push(Record { asked, granted, releasing, released, permit, attempts });
        if !order.pause.is_zero() {
            thread::sleep(Duration::from_nanos(random.next() % nanos(order.pause)));
        }
        let next = asked + nanos(order.every);
        thread::sleep(Duration::from_nanos(next.saturating_sub(now())));
        asked = now();
    }
    records
}

/// Random numbers that are good enough for pauses (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }
}
