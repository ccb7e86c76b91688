//! The libraries that are compared, each used as its documentation says to.

pub mod etcd;
mod probe;
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
    Peer {
        word,
        is_lock: true,
        start: Start::Threads(start),
    }
}

const fn other(word: &'static str, start: fn(&[String]) -> Cycle) -> Peer {
    Peer {
        word,
        is_lock: false,
        start: Start::Threads(start),
    }
}

const fn tasks(word: &'static str, runtime: fn() -> Runtime) -> Peer {
    Peer {
        word,
        is_lock: true,
        start: Start::Tasks(runtime),
    }
}

static ALL: [Peer; 29] = [
    lock("redlatch", |urls| redlatch(urls, Way::Release)),
    lock("redlatch-drop", |urls| redlatch(urls, Way::Drop)),
    lock("redlatch-fenced", |urls| redlatch(urls, Way::Fenced)),
    lock("redlatch-two", |urls| redlatch(urls, Way::Two)),
    lock("redlatch-reader", |urls| redlatch(urls, Way::Reader)),
    lock("redlatch-permit", |urls| redlatch(urls, Way::Permit)),
    lock("redlatch-group", |urls| redlatch(urls, Way::Group)),
    lock("probe", |urls| probe::probe(urls, true)),
    lock("probe-drop", |urls| probe::probe(urls, false)),
    tasks("rslock-tasks", rslock::multi_thread),
    tasks("rslock-single", rslock::current_thread),
    lock("rslock-threads", rslock::threads),
    lock("redlock", small::redlock),
    lock("bare", small::bare_sockets),
    other("mutex", small::mutex),
    other("etcd", etcd::lock),
    other("etcd-local-read", |urls| etcd::read(urls, true)),
    other("etcd-read", |urls| etcd::read(urls, false)),
    other("etcd-change", etcd::change),
    other("zookeeper-set", zookeeper::change),
    // kazoo, the library of Python for ZooKeeper, and its lock: a script.
    other(KAZOO, |_| panic!("a script has no threads of ours")),
    other("register-read", |urls| register(urls, Action::Read)),
    // The same, changed by one client: in one round.
    other("register-change", |urls| register(urls, Action::Change)),
    // Registers that a client changes and has no memory of.
    other("register-first", |urls| register(urls, Action::First)),
    // One that two clients change in turns: each finds the other's ballot.
    other("register-alternate", |urls| {
        register(urls, Action::Alternate)
    }),
    other("transactions", |urls| {
        transactions::start(urls, Protocol::Redlatch)
    }),
    other("transactions-whole", transactions::start_whole),
    other("two-phase", |urls| {
        transactions::start(urls, Protocol::TwoPhase)
    }),
    other("presumed-abort", |urls| {
        transactions::start(urls, Protocol::PresumedAbort)
    }),
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
    url.split_once("://")
        .expect("the servers' URLs have a scheme")
        .1
}
