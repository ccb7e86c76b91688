//! The libraries that are compared, each used as its documentation says to.

mod ceiling;
pub mod etcd;
mod floor;
pub mod kazoo;
mod local;
mod redlatch;
mod redlock;
pub mod registers;
mod rslock;
mod transactions;
mod zookeeper;

use crate::work::{self, Answer, Blocking, Order};
use etcd::EtcdKey;
use redlatch::{Redlatch, Way};
use registers::Registers;

pub use redlatch::client;

/// A library, and the way to use it.
pub struct Peer {
    /// The name on the command line of a worker, and in names of locks.
    pub word: &'static str,
    /// Whether it takes locks: they must be gone from the servers when they are released.
    pub is_lock: bool,
    /// Connects to these servers, if it ever does, as so many clients, and hands out what carries
    /// out orders.
    pub start: fn(&[String], usize) -> Run,
}

/// Carries out orders.
pub type Run = Box<dyn FnMut(&Order) -> Answer>;

const fn lock(word: &'static str, start: fn(&[String], usize) -> Run) -> Peer {
    Peer { word, is_lock: true, start }
}

/// What takes no locks on servers of Redis.
const fn other(word: &'static str, start: fn(&[String], usize) -> Run) -> Peer {
    Peer { word, is_lock: false, start }
}

static ALL: [Peer; 23] = [
    // This library, released with `release()`, which waits for a majority's reply.
    lock("redlatch", |urls, clients| blocking(Redlatch::new(urls, Way::Release), clients)),
    // Released by dropping the guard, which waits for nothing.
    lock("redlatch-drop", |urls, clients| blocking(Redlatch::new(urls, Way::Drop), clients)),
    // Each lock with a fencing token.
    lock("redlatch-fenced", |urls, clients| blocking(Redlatch::new(urls, Way::Fenced), clients)),
    // Two resources at once.
    lock("redlatch-two", |urls, clients| blocking(Redlatch::new(urls, Way::Two), clients)),
    // As a reader of a lock.
    lock("redlatch-reader", |urls, clients| blocking(Redlatch::new(urls, Way::Reader), clients)),
    // One of `PERMITS` of a lock.
    lock("redlatch-permit", |urls, clients| blocking(Redlatch::new(urls, Way::Permit), clients)),
    // rslock on tokio's default runtime, one worker per processor, with a task for each client.
    lock("rslock-tasks", |urls, clients| rslock::tasks(urls, rslock::multi_thread(), clients)),
    // The same on tokio's current-thread runtime.
    lock("rslock-single", |urls, clients| rslock::tasks(urls, rslock::current_thread(), clients)),
    // rslock in threads that block: each calls `block_on` on one shared runtime.
    lock("rslock-threads", |urls, clients| {
        blocking(rslock::Threads::new(urls, rslock::multi_thread()), clients)
    }),
    // redlock, which opens a new connection for every command.
    lock("redlock", |urls, clients| blocking(redlock::Redlock::new(urls), clients)),
    // Blocking sockets, and nothing else.
    lock("floor", |urls, clients| blocking(floor::Floor::new(urls), clients)),
    // Pipelines that keep the servers busy all the time.
    lock("ceiling", |urls, _| ceiling::start(urls)),
    // A mutex of this process.
    other("local", |_, clients| blocking(local::Local::default(), clients)),
    // One server of etcd, and its lock.
    other("etcd", |urls, clients| blocking(etcd::Etcd::new(&urls[0]), clients)),
    // A register of this library that is read, changed by one client, changed first by a client, or
    // changed by two in turns.
    other("register-read", |urls, clients| {
        blocking(Registers::new(urls, registers::Action::Read), clients)
    }),
    other("register-change", |urls, clients| {
        blocking(Registers::new(urls, registers::Action::Change), clients)
    }),
    other("register-first", |urls, clients| {
        blocking(Registers::new(urls, registers::Action::First), clients)
    }),
    other("register-alternate", |urls, clients| {
        blocking(Registers::new(urls, registers::Action::Alternate), clients)
    }),
    // A key of etcd, as one member has it, as a majority has it, or compared and set.
    other("etcd-local-read", |urls, clients| {
        blocking(EtcdKey::new(&urls[0], etcd::Action::ReadLocal), clients)
    }),
    other("etcd-read", |urls, clients| {
        blocking(EtcdKey::new(&urls[0], etcd::Action::Read), clients)
    }),
    other("etcd-change", |urls, clients| {
        blocking(EtcdKey::new(&urls[0], etcd::Action::Change), clients)
    }),
    // A node of ZooKeeper, compared and set.
    other("zookeeper-set", |urls, clients| blocking(zookeeper::Znode::new(&urls[0]), clients)),
    // kazoo, the library of Python for ZooKeeper, and its lock.
    other(kazoo::WORD, |_, _| panic!("a script is no part of this program")),
];

/// The peer with this word, which is one of this program's own.
pub fn find(word: &str) -> &'static Peer {
    let peer = ALL.iter().chain(&transactions::ALL).find(|peer| peer.word == word);
    peer.unwrap_or_else(|| panic!("there is no peer {word}"))
}

fn blocking<B: Blocking + 'static>(peer: B, clients: usize) -> Run {
    Box::new(move |order| work::run(&peer, order, clients))
}

/// The `host:port` of `redis://host:port`.
fn address(url: &str) -> &str {
    url.split_once("://").expect("the servers' URLs have a scheme").1
}
