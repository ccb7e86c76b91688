//! The least that a client with redlatch's design spends: leader and followers among the calling
//! threads, one socket to each node, every command written to all nodes at once, and a majority
//! decides. Its lanes show how far redlatch is from what any such client must spend.
//!
//! It has no queue, no attempts, no validity, no time limits, no reconnects and no events. Where a
//! client would act, because a lock is not free or a connection ends, it panics.

use super::address;
use super::small::SCRIPT;
use crate::resp::Connection;
use crate::work::{Cycle, Note, TTL};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::Duration;
use std::{fmt, mem, process, ptr};

/// If no node sends anything for so long, the run ends.
const SILENCE: Duration = Duration::from_secs(60);

thread_local! {
    static FOLLOWER: Arc<Follower> =
        Arc::new(Follower { waits: AtomicBool::new(false), thread: thread::current() });
}

/// A thread, which waits for one round at a time.
struct Follower {
    waits: AtomicBool,
    thread: Thread,
}

struct Client {
    shared: Mutex<Shared>,
    /// Is the leader asleep, or about to sleep?
    is_asleep: AtomicBool,
    waker: Waker,
}

struct Shared {
    /// The leader has taken it out.
    event_loop: Option<Box<EventLoop>>,
    inbox: Inbox,
}

/// Commands that are not written yet: the same bytes for each node.
#[derive(Default)]
struct Inbox {
    output: Vec<u8>,
    rounds: Vec<Round>,
}

/// A command whose replies are counted.
struct Round {
    /// None if nobody waits, or no longer.
    follower: Option<Arc<Follower>>,
    replies: usize,
}

struct EventLoop {
    poll: Poll,
    events: Events,
    inbox: Inbox,
    nodes: Vec<Node>,
    /// In the order of their commands, until all nodes have replied to them.
    rounds: VecDeque<Round>,
    /// How many rounds were before the first of these.
    finished: usize,
}

struct Node {
    stream: TcpStream,
    input: Vec<u8>,
    /// To how many rounds it has replied since the start.
    replied: usize,
}

/// Its releases wait for a majority, or are only written.
pub fn probe(urls: &[String], waits: bool) -> Cycle {
    let poll = Poll::new().expect("there are descriptors");
    let mut sha1 = String::new();
    let connect = |(index, url): (usize, &String)| {
        let mut connection = Connection::new(address(url)).expect("the server accepts");
        sha1 = connection
            .ask(&["SCRIPT", "LOAD", SCRIPT])
            .expect("the server answers");
        let stream = connection.into_stream();
        stream
            .set_nonblocking(true)
            .expect("an option of every connection");
        let mut stream = TcpStream::from_std(stream);
        let registered = poll
            .registry()
            .register(&mut stream, Token(index), Interest::READABLE);
        registered.expect("the stream is new");
        Node {
            stream,
            input: Vec::new(),
            replied: 0,
        }
    };
    let nodes: Vec<_> = urls.iter().enumerate().map(connect).collect();
    let waker = Waker::new(poll.registry(), Token(nodes.len())).expect("there are descriptors");
    let events = Events::with_capacity(8);
    let inbox = Inbox::default();
    let rounds = VecDeque::new();
    let event_loop = Box::new(EventLoop {
        poll,
        events,
        inbox,
        nodes,
        rounds,
        finished: 0,
    });
    let shared = Mutex::new(Shared {
        event_loop: Some(event_loop),
        inbox: Inbox::default(),
    });
    let client = Client {
        shared,
        is_asleep: AtomicBool::new(false),
        waker,
    };
    let process = process::id();
    let numbers = AtomicU64::new(0);
    let ttl = TTL.as_millis().to_string();
    let set_end = format!("$2\r\nNX\r\n$2\r\nPX\r\n${}\r\n{ttl}\r\n", ttl.len());
    let release = format!("*5\r\n$7\r\nEVALSHA\r\n$40\r\n{sha1}\r\n$1\r\n1\r\n");
    Box::new(move |resource, is_contended, while_held| {
        assert!(!is_contended, "the probe has no queue and tries once");
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let names = format!(
            "${}\r\n{resource}\r\n$20\r\n{process:010}{number:010}\r\n",
            resource.len()
        );
        client.ask(true, format_args!("*6\r\n$3\r\nSET\r\n{names}{set_end}"));
        while_held(Note::default());
        client.ask(waits, format_args!("{release}{names}"));
    })
}

impl Client {
    /// Sends a command to all nodes, and waits for a majority if it is to wait.
    fn ask(&self, waits: bool, command: fmt::Arguments<'_>) {
        let follower = waits.then(|| FOLLOWER.with(Arc::clone));
        let own = follower.as_deref();
        own.into_iter()
            .for_each(|own| own.waits.store(true, Ordering::Relaxed));
        let mut shared = self.lock();
        shared
            .inbox
            .output
            .write_fmt(command)
            .expect("a vector takes all");
        shared.inbox.rounds.push(Round {
            follower: follower.clone(),
            replies: 0,
        });
        let mut event_loop = shared.event_loop.take();
        drop(shared);
        if event_loop.is_none() && self.is_asleep.swap(false, Ordering::SeqCst) {
            self.waker.wake().expect("an event of its own");
        }
        loop {
            if let Some(event_loop) = event_loop {
                self.lead(event_loop, own);
            }
            if !own.is_some_and(Follower::waits) {
                return;
            }
            thread::park();
            event_loop = own
                .filter(|own| own.waits())
                .and_then(|_| self.lock().event_loop.take());
        }
    }

    /// Writes and reads for all threads until the own round is decided, if there is one. Then a
    /// follower is promoted, and what is to be written is left to it.
    fn lead(&self, mut event_loop: Box<EventLoop>, own: Option<&Follower>) {
        loop {
            let mut shared = self.lock();
            if !own.is_some_and(Follower::waits) {
                let mut rounds = event_loop.rounds.iter().chain(&shared.inbox.rounds);
                let next = rounds.find_map(|round| round.follower.clone());
                if next.is_some() || shared.inbox.rounds.is_empty() {
                    shared.event_loop = Some(event_loop);
                    drop(shared);
                    return next.into_iter().for_each(|next| next.thread.unpark());
                }
            }
            mem::swap(&mut shared.inbox, &mut event_loop.inbox);
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
    fn waits(&self) -> bool {
        self.waits.load(Ordering::Acquire)
    }
}

impl EventLoop {
    fn write(&mut self) {
        for node in &mut self.nodes {
            node.stream
                .write_all(&self.inbox.output)
                .expect("the server reads");
        }
        self.inbox.output.clear();
        self.rounds.extend(self.inbox.rounds.drain(..));
    }

    /// Sleeps until a node has replied or the leader is woken, and counts the replies.
    fn read(&mut self, own: Option<&Follower>, is_asleep: &AtomicBool) {
        self.poll
            .poll(&mut self.events, Some(SILENCE))
            .expect("the poll has its descriptors");
        is_asleep.store(false, Ordering::SeqCst);
        assert!(!self.events.is_empty(), "no node replies");
        let nodes = self.nodes.len();
        for event in &self.events {
            // The waker has no node.
            let Some(node) = self.nodes.get_mut(event.token().0) else {
                continue;
            };
            node.receive();
            let mut start = 0;
            while let Some(length) = node.input[start..].iter().position(|&byte| byte == b'\n') {
                let reply = &node.input[start..start + length];
                assert!(
                    matches!(reply, b"+OK\r" | b":1\r"),
                    "{}",
                    reply.escape_ascii()
                );
                self.rounds[node.replied - self.finished].count(nodes / 2 + 1, own);
                node.replied += 1;
                start += length + 1;
            }
            node.input.drain(..start);
        }
        while self
            .rounds
            .pop_front_if(|round| round.replies == nodes)
            .is_some()
        {
            self.finished += 1;
        }
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        if thread::panicking() {
            // The followers would wait for ever.
            process::abort();
        }
    }
}

impl Node {
    /// Reads all that there is: an event comes once.
    fn receive(&mut self) {
        let mut buffer = [0; 1024];
        let mut length = buffer.len();
        while length == buffer.len() {
            length = match self.stream.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                result => result.expect("the connection lasts"),
            };
            assert!(length > 0, "a server closed its connection");
            self.input.extend(&buffer[..length]);
        }
    }
}

impl Round {
    fn count(&mut self, majority: usize, own: Option<&Follower>) {
        self.replies += 1;
        let Some(follower) = self.follower.take_if(|_| self.replies == majority) else {
            return;
        };
        follower.waits.store(false, Ordering::Release);
        if !own.is_some_and(|own| ptr::eq(own, &*follower)) {
            follower.thread.unpark();
        }
    }
}
