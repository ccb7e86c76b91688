//! Five servers behind proxies, and the faults that are injected.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use support::chance::Chance;
use support::eventually;
use support::locks::LIMIT;
use support::proxy::{Mode, Proxy};
use support::redis::Server;
use support::servers::Servers;

/// The pause between two kills: a restarted node does not count for [`TTL_MAX`](super::client), and
/// with three of those no client gets a lock.
const KILL_PAUSE: Duration = Duration::from_secs(4);

/// A fault of a node that lasts for a while.
#[derive(Clone, Copy)]
enum NodeFault {
    Stopped,
    Killed,
    Wire(Mode),
    Full,
    Forbidden(&'static str),
}

impl NodeFault {
    fn name(self) -> &'static str {
        match self {
            Self::Stopped => "SIGSTOP and SIGCONT",
            Self::Killed => "SIGKILL and restart without its data",
            Self::Wire(mode) => mode.name(),
            Self::Full => "out of memory",
            Self::Forbidden(_) => "a right taken away",
        }
    }

    fn any(chance: &mut Chance) -> Self {
        let delay = Mode::Delay {
            to_server: chance.millis(0..=60),
            to_client: chance.millis(0..=120),
        };
        let offset = chance.below(40);
        let wires = [
            delay,
            delay,
            Mode::Swallow,
            Mode::Vanish,
            Mode::CutAfter(offset),
            Mode::ResetAfter(offset),
            Mode::Bytewise,
            Mode::Refuse,
            Mode::Reset,
        ];
        match chance.below(12) {
            0 | 1 => Self::Stopped,
            2 => Self::Killed,
            3 => Self::Full,
            4 => Self::Forbidden(chance.pick(&["-set", "-evalsha", "-@scripting", "-del"])),
            _ => Self::Wire(chance.pick(&wires)),
        }
    }
}

struct Node {
    proxy: Proxy,
    /// Its fault, and until when.
    fault: Option<(NodeFault, Instant)>,
}

/// The servers and their faults.
pub(crate) struct FaultyServers {
    servers: Servers,
    nodes: Vec<Node>,
    killed: Instant,
    /// How often each fault was injected.
    pub(crate) faults: BTreeMap<&'static str, u64>,
}

impl FaultyServers {
    pub(crate) fn open(count: usize) -> Self {
        let servers = Servers::start(count);
        let node = |server: &Server| Node {
            proxy: Proxy::start(server.port()),
            fault: None,
        };
        let nodes = servers.iter().map(node).collect();
        Self {
            servers,
            nodes,
            killed: Instant::now(),
            faults: BTreeMap::new(),
        }
    }

    /// The URLs of the proxies.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.proxy.url()).collect()
    }

    /// Ends faults whose time is over, and perhaps injects another.
    pub(crate) fn step(&mut self, chance: &mut Chance) {
        for index in 0..self.nodes.len() {
            if self.nodes[index]
                .fault
                .is_some_and(|(_, until)| until <= Instant::now())
            {
                self.end_fault(index);
            }
        }
        let index = chance.below(self.nodes.len());
        let ill = self
            .nodes
            .iter()
            .filter(|node| node.fault.is_some())
            .count();
        // Mostly one or two nodes have a fault, and sometimes a majority.
        let most = if chance.one_in(20) { 4 } else { 2 };
        if self.nodes[index].fault.is_some() {
            return;
        }
        if chance.one_in(10) {
            self.inject_momentary_fault(index, chance);
        } else if ill < most {
            self.inject_fault(index, chance);
        }
    }

    /// Injects a fault that is over at once.
    fn inject_momentary_fault(&mut self, index: usize, chance: &mut Chance) {
        let server = &self.servers[index];
        let proxy = &self.nodes[index].proxy;
        let name = match chance.below(3) {
            0 => {
                proxy.set(Mode::Reset);
                proxy.set(Mode::Pass);
                "all connections reset"
            }
            1 => {
                server.command(&["SCRIPT", "FLUSH", "SYNC"]);
                "SCRIPT FLUSH"
            }
            _ => {
                server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
                "CLIENT KILL"
            }
        };
        *self.faults.entry(name).or_default() += 1;
    }

    fn inject_fault(&mut self, index: usize, chance: &mut Chance) {
        let fault = NodeFault::any(chance);
        let server = &mut self.servers[index];
        let node = &mut self.nodes[index];
        match fault {
            NodeFault::Killed if self.killed.elapsed() < KILL_PAUSE => return,
            NodeFault::Killed => server.kill(),
            NodeFault::Stopped => server.pause(),
            NodeFault::Wire(mode) => node.proxy.set(mode),
            NodeFault::Full => drop(server.command(&["CONFIG", "SET", "maxmemory", "1"])),
            NodeFault::Forbidden(right) => {
                drop(server.command(&["ACL", "SETUSER", "default", right]));
            }
        }
        node.fault = Some((fault, Instant::now() + chance.millis(30..=900)));
        *self.faults.entry(fault.name()).or_default() += 1;
    }

    fn end_fault(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let node = &mut self.nodes[index];
        let Some((fault, _)) = node.fault.take() else {
            return;
        };
        match fault {
            NodeFault::Killed => {
                server.restart();
                self.killed = Instant::now();
            }
            NodeFault::Stopped => server.resume(),
            NodeFault::Wire(_) => node.proxy.set(Mode::Pass),
            NodeFault::Full => drop(server.command(&["CONFIG", "SET", "maxmemory", "0"])),
            NodeFault::Forbidden(_) => {
                drop(server.command(&["ACL", "SETUSER", "default", "+@all"]));
            }
        }
    }

    /// Ends all faults.
    pub(crate) fn end_all_faults(&mut self) {
        (0..self.nodes.len()).for_each(|index| self.end_fault(index));
    }

    /// The number of keys on all servers.
    pub(crate) fn keys(&self) -> i64 {
        self.servers
            .iter()
            .map(|server| server.command(&["DBSIZE"]).integer())
            .sum()
    }

    /// The number of keys that are left after all of them should have expired.
    pub(crate) fn leaked(&self) -> i64 {
        // A server counts expired keys until it removes them.
        eventually(LIMIT, || self.keys() == 0);
        self.keys()
    }
}
