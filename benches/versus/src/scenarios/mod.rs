//! The scenarios, each in a file of its own.

mod builds;
mod ceiling;
mod contended;
mod fenced;
mod frozen;
pub mod handoff;
mod permits;
mod places;
mod readers;
mod registers;
mod rtt;
mod shared;
mod solo;
mod tls;
mod transactions;
mod waiting;

use crate::report::Findings;
use crate::servers::Servers;
use std::path::PathBuf;
use std::time::Duration;

/// What all scenarios share.
pub struct Context {
    pub servers: Servers,
    pub nodes: usize,
    /// The least number of turns for each peer.
    pub turns: usize,
    /// How long a turn is.
    pub slice: Duration,
    pub is_quick: bool,
    /// Another build of this program.
    pub other_build: Option<PathBuf>,
    pub handoff: handoff::Options,
}

/// A scenario under its name.
pub struct Scenario {
    pub name: &'static str,
    pub about: &'static str,
    pub run: fn(&Context) -> Vec<Findings>,
}

pub const ALL: &[Scenario] = &[
    Scenario { name: "solo", about: "one thread, a free lock", run: solo::run },
    Scenario { name: "fenced", about: "fenced, and two resources at once", run: fenced::run },
    Scenario { name: "shared", about: "1 to 64 threads, one client, free locks", run: shared::run },
    Scenario { name: "contended", about: "8 threads or processes, one lock", run: contended::run },
    Scenario { name: "handoff", about: "many clients, always one lock", run: handoff::run },
    Scenario { name: "readers", about: "readers of one lock, and a writer", run: readers::run },
    Scenario { name: "permits", about: "many clients, 8 permits", run: permits::run },
    Scenario { name: "places", about: "on how many nodes a lock lies", run: places::run },
    Scenario { name: "waiting", about: "long waits for one lock", run: waiting::run },
    Scenario { name: "frozen", about: "one server is frozen (SIGSTOP)", run: frozen::run },
    Scenario { name: "rtt", about: "servers a millisecond away", run: rtt::run },
    Scenario { name: "tls", about: "over TLS: 1 and 32 threads, reconnects", run: tls::run },
    Scenario { name: "ceiling", about: "the servers' limit", run: ceiling::run },
    Scenario { name: "builds", about: "this build beside another one", run: builds::run },
    Scenario {
        name: "registers",
        about: "values that a majority agrees on, and locks",
        run: registers::run,
    },
    Scenario {
        name: "transactions",
        about: "two participants commit, beside two-phase commit",
        run: transactions::run,
    },
];

impl Context {
    fn title(&self, name: &str) -> String {
        match self.nodes {
            1 => format!("{name}, 1 node"),
            nodes => format!("{name}, {nodes} nodes"),
        }
    }
}
