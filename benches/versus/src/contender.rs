//! Clients that compete for one lock: each is a process of its own, with connections of its own,
//! and writes down when it asked for the lock, got it and released it. The program runs itself
//! again for that; the two talk in lines.

use crate::handoffs::{Record, nanos, now};
use crate::peers::Peer;
use crate::work::Blocking;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
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
    pub asks: usize,
}

/// A contender's process, as seen from outside.
pub struct Contender {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Contender {
    /// Starts a client of these servers and waits until it has connected.
    pub fn start_all(count: usize, peer: Peer, urls: &[String]) -> Vec<Self> {
        let mut all: Vec<_> = (0..count).map(|_| Self::start(peer, urls)).collect();
        for contender in &mut all {
            assert_eq!(contender.line(), "ready", "the contender connects");
        }
        all
    }

    fn start(peer: Peer, urls: &[String]) -> Self {
        let program = std::env::current_exe().expect("a program knows where it is");
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).arg(peer.word()).args(urls);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be run again");
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, orders, answers }
    }

    /// Begins what is ordered. Its end is awaited with [`finish`](Self::finish).
    pub fn begin(&mut self, order: &Order) {
        let orders = self.orders.as_mut().expect("they are closed only at the end");
        writeln!(orders, "{}", order.to_text()).expect("the contender listens");
    }

    /// The locks that it had, in order.
    pub fn finish(&mut self) -> Vec<Record> {
        let line = self.line();
        let records = line.split(' ').filter(|word| !word.is_empty()).map(Record::from_text);
        let records: Option<_> = records.collect();
        records.expect("the contender sends a result; its output above says why it sent none")
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the contender's output can be read");
        assert!(line.ends_with('\n'), "the contender ended; its output above says why");
        line.trim_end().to_owned()
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        // The process ends when its input is closed.
        self.orders = None;
        let _ = self.child.wait();
    }
}

impl Order {
    fn to_text(&self) -> String {
        let (hold, pause) = (nanos(self.hold), nanos(self.pause));
        format!("{} {} {} {hold} {pause} {}", self.resource, self.start, self.end, self.asks)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (resource, numbers) = text.split_once(' ')?;
        let numbers: Option<Vec<u64>> = numbers.split(' ').map(|word| word.parse().ok()).collect();
        let [start, end, hold, pause, asks] = numbers?[..] else { return None };
        Some(Self {
            resource: resource.to_owned(),
            start,
            end,
            hold: Duration::from_nanos(hold),
            pause: Duration::from_nanos(pause),
            asks: usize::try_from(asks).ok()?,
        })
    }
}

/// Is a contender, until there are no more orders.
pub fn serve(arguments: &[String]) -> Result<(), String> {
    let by_itself = "this is started by the program itself";
    let (peer, urls) = arguments.split_first().ok_or(by_itself)?;
    let mut contend = Peer::from_word(peer).and_then(|peer| peer.contend(urls)).ok_or(by_itself)?;
    say("ready")?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let order = Order::from_text(&line).ok_or_else(|| format!("{line:?} is no order"))?;
        let records: Vec<_> = contend(&order).into_iter().map(Record::to_text).collect();
        say(&records.join(" "))?;
    }
    Ok(())
}

fn say(line: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// Carries out an order.
pub fn contend<B: Blocking>(peer: &B, order: &Order) -> Vec<Record> {
    let mut random = Random(now() ^ (u64::from(std::process::id()) << 32));
    let mut records = Vec::new();
    thread::sleep(Duration::from_nanos(order.start.saturating_sub(now())));
    let mut asked = now();
    while asked < order.end && records.len() < order.asks {
        let held = peer.acquire(&order.resource, true);
        let granted = now();
        if !order.hold.is_zero() {
            thread::sleep(order.hold);
        }
        let releasing = now();
        peer.release(held);
        records.push(Record { asked, granted, releasing, released: now() });
        if !order.pause.is_zero() {
            thread::sleep(Duration::from_nanos(random.next() % nanos(order.pause)));
        }
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
