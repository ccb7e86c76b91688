//! The least that a client with redlatch's design spends: leader and followers among the calling
//! threads, one socket to each node, every command written to all of them at once, and a majority
//! decides. Its lane shows the distance between redlatch and any such client.
//!
//! It has no queue, no attempts, no validity, no time limits and no events. Where a client would
//! act, because a lock is not free, a node is slow or a connection ends, it panics.

use super::address;
use super::small::SCRIPT;
use crate::resp::{Connection, command};
use crate::work::{Cycle, Note, TTL};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::swap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::Duration;
use std::{process, ptr};

/// A node that sends nothing for so long ends the run.
const SILENCE: Duration = Duration::from_secs(60);

/// A round is undecided, or its majority has agreed or refused.
const UNDECIDED: u8 = 0;
const AGREED: u8 = 1;
const REFUSED: u8 = 2;

thread_local! {
    /// This thread as a follower: it waits for one round at a time.
    static FOLLOWER: Arc<Follower> =
        Arc::new(Follower { outcome: AtomicU8::new(UNDECIDED), thread: thread::current() });
}

struct Follower {
    outcome: AtomicU8,
    thread: Thread,
}

/// What all threads share.
struct Client {
    shared: Mutex<Shared>,
    /// Is the leader asleep, or about to sleep?
    is_asleep: AtomicBool,
    waker: Waker,
    locks: AtomicU64,
}

struct Shared {
    /// The leader has taken it out.
    event_loop: Option<Box<EventLoop>>,
    inbox: Inbox,
}

/// What was asked for and is not written yet: the same bytes for each node.
#[derive(Default)]
struct Inbox {
    output: Vec<u8>,
    rounds: Vec<Round>,
}

/// A command whose replies are counted.
struct Round {
    /// None if nobody waits, or no longer.
    follower: Option<Arc<Follower>>,
    agreed: usize,
    refused: usize,
}

struct EventLoop {
    poll: Poll,
    events: Events,
    /// What is written next, of the shared one.
    inbox: Inbox,
    nodes: Vec<Node>,
    /// In the order of their commands, until all nodes have replied to them.
    rounds: VecDeque<Round>,
    /// How many rounds were taken out of the front.
    finished: usize,
}

struct Node {
    stream: TcpStream,
    input: Vec<u8>,
    /// To how many rounds it has replied, of all there were.
    replied: usize,
}

/// Releases wait for a majority, or are written only.
pub fn probe(urls: &[String], waits: bool) -> Cycle {
    let (mut nodes, mut sha1) = (Vec::new(), String::new());
    let poll = Poll::new().expect("there are descriptors");
    for (index, url) in urls.iter().enumerate() {
        let mut connection = Connection::new(address(url)).expect("the server accepts");
        sha1 = connection.ask(&["SCRIPT", "LOAD", SCRIPT]).expect("the server answers");
        let stream = connection.into_stream();
        stream.set_nonblocking(true).expect("an option of every connection");
        let mut stream = TcpStream::from_std(stream);
        let registered = poll.registry().register(&mut stream, Token(index), Interest::READABLE);
        registered.expect("the stream is new");
        nodes.push(Node { stream, input: Vec::new(), replied: 0 });
    }
    let waker = Waker::new(poll.registry(), Token(nodes.len())).expect("there are descriptors");
    let (events, inbox, rounds) = (Events::with_capacity(8), Inbox::default(), VecDeque::new());
    let event_loop = EventLoop { poll, events, inbox, nodes, rounds, finished: 0 };
    let event_loop = Some(Box::new(event_loop));
    let shared = Mutex::new(Shared { event_loop, inbox: Inbox::default() });
    let (is_asleep, locks) = (AtomicBool::new(false), AtomicU64::new(0));
    let client = Client { shared, is_asleep, waker, locks };
    let (ttl, by_digest) = (TTL.as_millis().to_string(), command(&["EVALSHA", &sha1, "1", "", ""]));
    // The words that all releases begin with.
    let by_digest = by_digest.strip_suffix(b"$0\r\n\r\n$0\r\n\r\n").expect("the last are empty");
    let by_digest = String::from_utf8(by_digest.to_vec()).expect("it was made of text");
    let token_start = process::id();
    Box::new(move |resource, is_contended, while_held| {
        assert!(!is_contended, "the probe has no queue and tries once");
        let number = client.locks.fetch_add(1, Ordering::Relaxed);
        let (token, length) = (format!("{token_start:010}{number:010}"), resource.len());
        client.ask(true, |output| {
            write!(
                output,
                "*6\r\n$3\r\nSET\r\n${length}\r\n{resource}\r\n$20\r\n{token}\r\n$2\r\nNX\r\n\
                 $2\r\nPX\r\n${}\r\n{ttl}\r\n",
                ttl.len()
            )
        });
        while_held(Note::default());
        client.ask(waits, |output| {
            write!(output, "{by_digest}${length}\r\n{resource}\r\n$20\r\n{token}\r\n")
        });
    })
}

impl Client {
    /// Sends a command to all nodes, and waits until a majority has agreed, if it is to wait.
    fn ask(&self, waits: bool, command: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) {
        let follower = waits.then(|| FOLLOWER.with(Arc::clone));
        if let Some(follower) = &follower {
            follower.outcome.store(UNDECIDED, Ordering::Relaxed);
        }
        let mut shared = self.lock();
        command(&mut shared.inbox.output).expect("a vector takes all");
        let round = Round { follower: follower.clone(), agreed: 0, refused: 0 };
        shared.inbox.rounds.push(round);
        let event_loop = shared.event_loop.take();
        drop(shared);
        let is_leader = event_loop.is_some();
        if let Some(event_loop) = event_loop {
            self.lead(event_loop, follower.as_deref());
        } else if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake().expect("an event of its own");
        }
        let Some(follower) = follower else { return };
        if !is_leader {
            self.follow(&follower);
        }
        let outcome = follower.outcome.load(Ordering::Relaxed);
        assert_eq!(outcome, AGREED, "a majority executes the command");
    }

    /// Waits until the round is decided, and leads if there is no leader any more.
    fn follow(&self, follower: &Follower) {
        while follower.is_undecided() {
            let event_loop = self.lock().event_loop.take();
            match event_loop {
                Some(event_loop) => self.lead(event_loop, Some(follower)),
                None => thread::park(),
            }
        }
    }

    /// Writes and reads for all threads until the own round is decided, if there is one. Then a
    /// follower is promoted, and what is to be written is left to it.
    fn lead(&self, mut event_loop: Box<EventLoop>, own: Option<&Follower>) {
        loop {
            let mut shared = self.lock();
            if !own.is_some_and(Follower::is_undecided) {
                let rounds = event_loop.rounds.iter().chain(&shared.inbox.rounds);
                let next = rounds.filter_map(|round| round.follower.as_ref()).next().cloned();
                if next.is_some() || shared.inbox.rounds.is_empty() {
                    shared.event_loop = Some(event_loop);
                    drop(shared);
                    return next.into_iter().for_each(|follower| follower.thread.unpark());
                }
            }
            swap(&mut shared.inbox, &mut event_loop.inbox);
            let sleeps = event_loop.inbox.rounds.is_empty();
            self.is_asleep.store(sleeps, Ordering::SeqCst);
            drop(shared);
            if sleeps {
                event_loop.read(own, &self.is_asleep);
            } else {
                event_loop.write();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("nothing panics with it held")
    }
}

impl Follower {
    fn is_undecided(&self) -> bool {
        self.outcome.load(Ordering::Acquire) == UNDECIDED
    }
}

impl EventLoop {
    fn write(&mut self) {
        for node in &mut self.nodes {
            node.stream.write_all(&self.inbox.output).expect("the server reads");
        }
        self.inbox.output.clear();
        self.rounds.extend(self.inbox.rounds.drain(..));
    }

    /// Sleeps until a node has replied or the leader is woken, and counts the replies.
    fn read(&mut self, own: Option<&Follower>, is_asleep: &AtomicBool) {
        self.poll.poll(&mut self.events, Some(SILENCE)).expect("the poll has its descriptors");
        is_asleep.store(false, Ordering::SeqCst);
        assert!(!self.events.is_empty(), "no node replies");
        let nodes = self.nodes.len();
        for event in &self.events {
            // The waker has no node.
            let Some(node) = self.nodes.get_mut(event.token().0) else { continue };
            node.receive();
            let mut start = 0;
            while let Some(length) = node.input[start..].iter().position(|&byte| byte == b'\n') {
                let reply = &node.input[start..start + length];
                let agrees = reply.starts_with(b"+OK") || reply.starts_with(b":1");
                self.rounds[node.replied - self.finished].count(agrees, nodes, own);
                node.replied += 1;
                start += length + 1;
            }
            node.input.drain(..start);
        }
        while self.rounds.front().is_some_and(|round| round.agreed + round.refused == nodes) {
            self.rounds.pop_front();
            self.finished += 1;
        }
    }
}

impl Node {
    /// Reads all that there is: an event comes once.
    fn receive(&mut self) {
        let mut buffer = [0; 1024];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("a server closed its connection"),
                Ok(length) => {
                    self.input.extend(&buffer[..length]);
                    if length < buffer.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("a server cannot be read: {error}"),
            }
        }
    }
}

impl Round {
    fn count(&mut self, agrees: bool, nodes: usize, own: Option<&Follower>) {
        let (count, outcome) =
            if agrees { (&mut self.agreed, AGREED) } else { (&mut self.refused, REFUSED) };
        *count += 1;
        if *count <= nodes / 2 {
            return;
        }
        let Some(follower) = self.follower.take() else { return };
        follower.outcome.store(outcome, Ordering::Release);
        if !own.is_some_and(|own| ptr::eq(own, &*follower)) {
            follower.thread.unpark();
        }
    }
}
