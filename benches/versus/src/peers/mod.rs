//! The libraries that are compared, each used as its documentation says to.

pub mod etcd;
mod redlatch;
pub mod registers;
mod rslock;
mod small;
mod transactions;
mod zookeeper;

use crate::work::{Answer, Cycle, Order, run};
use crate::worker::KAZOO;
pub use redlatch::client;
use redlatch::{Way, redlatch};
use registers::{Action, register};
use tokio::runtime::Runtime;
use transactions::Protocol;

/// A library, and the way to use it.
pub struct Peer {
    /// The name on the command line of a worker, and in names of locks.
    pub word: &'static str,
    /// Whether its locks are keys with their names.
    pub is_lock: bool,
    start: Start,
}

/// Connects to these servers, if it ever does.
enum Start {
    /// For clients that are threads.
    Threads(fn(&[String]) -> Cycle),
    /// For clients that are tasks of rslock, on this runtime.
    Tasks(fn() -> Runtime),
}

/// Carries out orders.
pub type Run = Box<dyn FnMut(&Order) -> Answer>;

const fn lock(word: &'static str, start: fn(&[String]) -> Cycle) -> Peer {
    Peer { word, is_lock: true, start: Start::Threads(start) }
}

const fn other(word: &'static str, start: fn(&[String]) -> Cycle) -> Peer {
    Peer { word, is_lock: false, start: Start::Threads(start) }
}

const fn tasks(word: &'static str, runtime: fn() -> Runtime) -> Peer {
    Peer { word, is_lock: true, start: Start::Tasks(runtime) }
}

static ALL: [Peer; 25] = [
    // This library, released with `release()`, which waits for a majority's reply.
    lock("redlatch", |urls| redlatch(urls, Way::Release)),
    // Released by dropping the guard, which waits for nothing.
    lock("redlatch-drop", |urls| redlatch(urls, Way::Drop)),
    // Each lock with a fencing token.
    lock("redlatch-fenced", |urls| redlatch(urls, Way::Fenced)),
    // Two resources at once.
    lock("redlatch-two", |urls| redlatch(urls, Way::Two)),
    // As a reader of a lock.
    lock("redlatch-reader", |urls| redlatch(urls, Way::Reader)),
    // One of several permits of a lock.
    lock("redlatch-permit", |urls| redlatch(urls, Way::Permit)),
    // rslock on tokio's default runtime, one worker per processor.
    tasks("rslock-tasks", rslock::multi_thread),
    // rslock on tokio's current-thread runtime.
    tasks("rslock-single", rslock::current_thread),
    // rslock in threads that block: each calls `block_on` on one shared runtime.
    lock("rslock-threads", rslock::threads),
    // redlock, which opens a new connection for every command.
    lock("redlock", small::redlock),
    // Blocking sockets, and nothing else.
    lock("bare", small::bare_sockets),
    // A mutex of this process.
    other("mutex", small::mutex),
    // One server of etcd, and its lock.
    other("etcd", etcd::lock),
    // A key of etcd, as one member has it, as a majority has it, or compared and set.
    other("etcd-local-read", |urls| etcd::read(urls, true)),
    other("etcd-read", |urls| etcd::read(urls, false)),
    other("etcd-change", etcd::change),
    // A node of ZooKeeper, compared and set.
    other("zookeeper-set", zookeeper::change),
    // kazoo, the library of Python for ZooKeeper, and its lock: a script.
    other(KAZOO, |_| panic!("a script has no threads of ours")),
    // A register of this library that is read.
    other("register-read", |urls| register(urls, Action::Read)),
    // The same, changed by one client: in one round.
    other("register-change", |urls| register(urls, Action::Change)),
    // Registers that a client changes and has no memory of.
    other("register-first", |urls| register(urls, Action::First)),
    // One that two clients change in turns: each finds the other's ballot.
    other("register-alternate", |urls| register(urls, Action::Alternate)),
    // Two participants that commit.
    other("transactions", |urls| transactions::start(urls, Protocol::Redlatch)),
    other("two-phase", |urls| transactions::start(urls, Protocol::TwoPhase)),
    other("presumed-abort", |urls| transactions::start(urls, Protocol::PresumedAbort)),
];

/// The peer with this word, which is one of this program's own.
pub fn find(word: &str) -> &'static Peer {
    let peer = ALL.iter().find(|peer| peer.word == word);
    peer.unwrap_or_else(|| panic!("there is no peer {word}"))
}

impl Peer {
    /// Connects, and hands out what carries out orders for this many clients.
    pub fn start(&self, urls: &[String], clients: usize) -> Run {
        match self.start {
            Start::Threads(start) => {
                let cycle = start(urls);
                Box::new(move |order| run(&cycle, order, clients))
            }
            Start::Tasks(runtime) => rslock::tasks(urls, runtime(), clients),
        }
    }
}

/// The `host:port` of `redis://host:port`.
fn address(url: &str) -> &str {
    url.split_once("://").expect("the servers' URLs have a scheme").1
}
