//! The libraries that are compared, each used as its documentation says to.

mod blocking;
mod ceiling;
pub mod etcd;
mod floor;
mod kazoo;
mod local;
mod redlatch;
pub mod registers;
mod rslock;
mod zookeeper;

use crate::contender::{Order, contend};
use crate::handoffs::Record;
use crate::work::{self, Blocking, Plan, Slice};
pub use redlatch::PERMITS;
use redlatch::Way;
use registers::Registers;
use std::process::Command;

/// A library, and the way to use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This library, released with `release()`, which waits for a majority's reply.
    Redlatch,
    /// This library, released by dropping the guard, which waits for nothing.
    RedlatchDrop,
    /// This library, each lock with a fencing token.
    RedlatchFenced,
    /// This library, two resources at once.
    RedlatchTwo,
    /// This library, as a reader of a lock.
    RedlatchReader,
    /// This library, one of [`PERMITS`] of a lock.
    RedlatchPermits,
    /// rslock on tokio's default runtime, one worker per processor.
    Rslock,
    /// rslock on tokio's current-thread runtime.
    RslockSingle,
    /// rslock in threads that block: each calls `block_on` on one shared runtime.
    RslockThreads,
    /// redlock, which opens a new connection for every command.
    Redlock,
    /// Blocking sockets, and nothing else.
    Floor,
    /// Pipelines that keep the servers busy all the time.
    Ceiling,
    /// A mutex of this process.
    Local,
    /// One server of etcd, and its lock.
    Etcd,
    /// kazoo, the library of Python for ZooKeeper, and its lock.
    Kazoo,
    /// A register of this library that is read.
    RegisterRead,
    /// The same, changed by one client: in one round.
    RegisterChange,
    /// Registers that a client changes and has no memory of.
    RegisterFirst,
    /// One that two clients change in turns: each finds the other's ballot.
    RegisterAlternate,
    /// A key of etcd, as one member has it.
    EtcdLocalRead,
    /// The same, as a majority has it.
    EtcdRead,
    /// The same, compared and set.
    EtcdChange,
    /// A node of ZooKeeper, compared and set.
    ZookeeperSet,
}

pub const ALL: [Peer; 23] = [
    Peer::Redlatch,
    Peer::RedlatchDrop,
    Peer::RedlatchFenced,
    Peer::RedlatchTwo,
    Peer::RedlatchReader,
    Peer::RedlatchPermits,
    Peer::Rslock,
    Peer::RslockSingle,
    Peer::RslockThreads,
    Peer::Redlock,
    Peer::Floor,
    Peer::Ceiling,
    Peer::Local,
    Peer::Etcd,
    Peer::Kazoo,
    Peer::RegisterRead,
    Peer::RegisterChange,
    Peer::RegisterFirst,
    Peer::RegisterAlternate,
    Peer::EtcdLocalRead,
    Peer::EtcdRead,
    Peer::EtcdChange,
    Peer::ZookeeperSet,
];

/// Carries out orders.
pub type Contend = Box<dyn FnMut(&Order) -> Vec<Record>>;

impl Peer {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Redlatch => "redlatch, release()",
            Self::RedlatchDrop => "redlatch, drop",
            Self::RedlatchFenced => "redlatch, fenced",
            Self::RedlatchTwo => "redlatch, two resources",
            Self::RedlatchReader => "redlatch, readers",
            Self::RedlatchPermits => "redlatch, permits",
            Self::Rslock => "rslock 0.10, tokio multi-thread",
            Self::RslockSingle => "rslock 0.10, tokio current-thread",
            Self::RslockThreads => "rslock 0.10, threads in block_on",
            Self::Redlock => "redlock 2.0",
            Self::Floor => "floor: bare sockets",
            Self::Ceiling => "ceiling: pipelines 256 deep",
            Self::Local => "a mutex in the process",
            Self::Etcd => "etcd, one server",
            Self::Kazoo => "kazoo",
            Self::RegisterRead => "register, read",
            Self::RegisterChange => "register, change by the same client",
            Self::RegisterFirst => "register, first change by a client",
            Self::RegisterAlternate => "register, change by two in turns",
            Self::EtcdLocalRead => "etcd, read of one member",
            Self::EtcdRead => "etcd, read",
            Self::EtcdChange => "etcd, compare and put",
            Self::ZookeeperSet => "ZooKeeper, setData with a version",
        }
    }

    /// The name on the command line of a worker.
    pub fn word(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn from_word(word: &str) -> Option<Self> {
        ALL.into_iter().find(|peer| peer.word() == word)
    }

    /// Connects to these servers, if it ever does, and hands out what runs slices.
    pub fn start(self, urls: &[String]) -> Box<dyn FnMut(&Plan) -> Slice> {
        match self {
            Self::Redlatch => blocking(redlatch::Redlatch::new(urls, Way::Release)),
            Self::RedlatchDrop => blocking(redlatch::Redlatch::new(urls, Way::Drop)),
            Self::RedlatchFenced => blocking(redlatch::Redlatch::new(urls, Way::Fenced)),
            Self::RedlatchTwo => blocking(redlatch::Redlatch::new(urls, Way::Two)),
            Self::RedlatchReader => blocking(redlatch::Redlatch::new(urls, Way::Reader)),
            Self::RedlatchPermits => blocking(redlatch::Redlatch::new(urls, Way::Permit)),
            Self::Redlock => blocking(blocking::Redlock::new(urls)),
            Self::Floor => blocking(floor::Floor::new(urls)),
            Self::Local => blocking(local::Local::default()),
            Self::Rslock => rslock::start(urls, rslock::multi_thread(), rslock::RETRY_DELAY),
            Self::RslockSingle => {
                rslock::start(urls, rslock::current_thread(), rslock::RETRY_DELAY)
            }
            Self::RslockThreads => {
                blocking(rslock::Threads::new(urls, rslock::multi_thread(), rslock::RETRY_DELAY))
            }
            Self::Ceiling => {
                let mut ceiling = ceiling::Ceiling::new(urls);
                Box::new(move |plan| ceiling.run(plan))
            }
            Self::Etcd => blocking(etcd::Etcd::new(&urls[0])),
            Self::RegisterRead => blocking(Registers::new(urls, registers::Action::Read)),
            Self::RegisterChange => blocking(Registers::new(urls, registers::Action::Change)),
            Self::RegisterFirst => blocking(Registers::new(urls, registers::Action::First)),
            Self::RegisterAlternate => blocking(Registers::new(urls, registers::Action::Alternate)),
            Self::EtcdLocalRead => blocking(etcd::EtcdKey::new(&urls[0], etcd::Action::ReadLocal)),
            Self::EtcdRead => blocking(etcd::EtcdKey::new(&urls[0], etcd::Action::Read)),
            Self::EtcdChange => blocking(etcd::EtcdKey::new(&urls[0], etcd::Action::Change)),
            Self::ZookeeperSet => blocking(zookeeper::Znode::new(&urls[0])),
            Self::Kazoo => panic!("a script has no threads of ours"),
        }
    }

    /// Connects as one client and hands out what carries out orders; nothing, for peers that do not
    /// compete.
    pub fn contend(self, urls: &[String]) -> Option<Contend> {
        let rslock = |delay| rslock::Threads::new(urls, rslock::current_thread(), delay);
        Some(match self {
            Self::Redlatch => contending(redlatch::Redlatch::new(urls, Way::Release)),
            Self::RedlatchReader => contending(redlatch::Redlatch::new(urls, Way::Reader)),
            Self::RedlatchPermits => contending(redlatch::Redlatch::new(urls, Way::Permit)),
            Self::RslockSingle => contending(rslock(rslock::RETRY_DELAY)),
            Self::Etcd => contending(etcd::Etcd::new(&urls[0])),
            _ => return None,
        })
    }

    /// The script that carries out orders, of peers that are no part of this program.
    pub fn script(self, urls: &[String]) -> Option<Command> {
        match self {
            Self::Kazoo => Some(kazoo::script("lock", &urls[0])),
            _ => None,
        }
    }

    /// Whether what it needs is installed; if not, this says so.
    pub fn can_run(self) -> bool {
        !matches!(self, Self::Kazoo) || kazoo::is_installed()
    }
}

fn contending<B: Blocking + 'static>(peer: B) -> Contend {
    Box::new(move |order| contend(&peer, order))
}

fn blocking<B: Blocking + 'static>(peer: B) -> Box<dyn FnMut(&Plan) -> Slice> {
    Box::new(move |plan| work::run(&peer, plan))
}

/// The `host:port` of `redis://host:port`.
fn address(url: &str) -> &str {
    url.split_once("://").expect("the servers' URLs have a scheme").1
}
