//! Servers behind proxies, and the faults that are injected.

use redlatch::LockClient;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::chance::Chance;
use support::locks::{with_long_timeout, without_restart_guard};
use support::proxy::{Mode, Proxy};
use support::redis::Server;
use support::relay::Relay;
use support::servers::Servers;

/// How the servers keep their data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// They keep what they have answered: each may be killed and started again, at any time.
    Durable,
    /// One that is started again has no vote.
    Volatile,
}

/// A fault of a node that lasts for a while.
#[derive(Clone, Copy)]
enum NodeFault {
    Stopped,
    Killed,
    Wire(Mode),
}

impl NodeFault {
    fn name(self) -> &'static str {
        match self {
            Self::Stopped => "SIGSTOP and SIGCONT",
            Self::Killed => "SIGKILL and restart",
            Self::Wire(mode) => mode.name(),
        }
    }

    fn any(chance: &mut Chance) -> Self {
        let delay = Mode::Delay {
            to_server: chance.millis(0..=40),
            to_client: chance.millis(0..=60),
        };
        let offset = chance.below(90);
        let cut = Mode::CutAfter(offset);
        let reset = Mode::ResetAfter(offset);
        let wires = [
            delay,
            delay,
            Mode::Swallow,
            Mode::Vanish,
            cut,
            reset,
            Mode::Twice,
            Mode::Refuse,
        ];
        match chance.below(10) {
            0..=2 => Self::Stopped,
            3 | 4 => Self::Killed,
            _ => Self::Wire(chance.pick(&wires)),
        }
    }
}

pub(crate) struct FaultyServers {
    pub(crate) servers: Servers,
    proxies: Vec<Proxy>,
    /// The fault of each node, and until when.
    present: Vec<Option<(NodeFault, Instant)>>,
    /// How many more servers may be killed.
    kills_left: usize,
    /// How often each fault was injected.
    pub(crate) faults: BTreeMap<&'static str, u64>,
}

impl FaultyServers {
    /// Servers that are a group, and work.
    pub(crate) fn formed(count: usize, memory: Memory) -> Self {
        let servers = group(count, memory);
        let proxies: Vec<Proxy> = servers
            .iter()
            .map(|server: &Server| Proxy::start(server.port()))
            .collect();
        let kills_left = if memory == Memory::Durable {
            usize::MAX
        } else {
            0
        };
        let present = vec![None; count];
        Self {
            servers,
            proxies,
            present,
            kills_left,
            faults: BTreeMap::new(),
        }
    }

    /// The URLs of the proxies.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.proxies.iter().map(Proxy::url).collect()
    }

    /// Ends faults whose time is over, and perhaps injects another.
    pub(crate) fn step(&mut self, chance: &mut Chance) {
        for index in 0..self.present.len() {
            if self.present[index].is_some_and(|(_, until)| until <= Instant::now()) {
                self.end_fault(index);
            }
        }
        let index = chance.below(self.present.len());
        let ill = self.present.iter().flatten().count();
        // Mostly a minority has a fault, and sometimes all.
        let minority = (self.present.len() - 1) / 2;
        let most = if chance.one_in(30) {
            self.present.len()
        } else {
            minority
        };
        if self.present[index].is_none() && ill < most && chance.one_in(3) {
            self.inject(index, chance);
        }
    }

    fn inject(&mut self, index: usize, chance: &mut Chance) {
        let fault = NodeFault::any(chance);
        match fault {
            NodeFault::Killed if self.kills_left == 0 => return,
            NodeFault::Killed => {
                self.kills_left -= 1;
                self.servers[index].kill();
            }
            NodeFault::Stopped => self.servers[index].pause(),
            NodeFault::Wire(mode) => self.proxies[index].set(mode),
        }
        self.present[index] = Some((fault, Instant::now() + chance.millis(5..=350)));
        *self.faults.entry(fault.name()).or_default() += 1;
    }

    fn end_fault(&mut self, index: usize) {
        match self.present[index].take() {
            Some((NodeFault::Killed, _)) => self.servers[index].restart(),
            Some((NodeFault::Stopped, _)) => self.servers[index].resume(),
            Some((NodeFault::Wire(_), _)) => self.proxies[index].set(Mode::Pass),
            None => {}
        }
    }

    /// Restarts a server.
    pub(crate) fn forget(&mut self, index: usize) {
        self.servers[index].restart();
        *self.faults.entry(NodeFault::Killed.name()).or_default() += 1;
    }

    pub(crate) fn end_all_faults(&mut self) {
        (0..self.present.len()).for_each(|index| self.end_fault(index));
    }
}

/// Servers that are a group.
fn group(count: usize, memory: Memory) -> Servers {
    let durable: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];
    let args = if memory == Memory::Durable {
        durable
    } else {
        &[]
    };
    let servers = Servers::start_with(count, args);
    let former = with_long_timeout(servers.urls())
        .build()
        .expect("the settings are good");
    former
        .registers()
        .form(memory == Memory::Volatile)
        .expect("the servers are new");
    servers
}

/// Servers behind relays that deliver each command twice.
pub(crate) fn doubled(count: usize) -> (Servers, Vec<Relay>) {
    let servers = group(count, Memory::Volatile);
    let relays = servers.iter().map(Relay::doubling).collect();
    (servers, relays)
}

/// A client whose rounds are lost often, since they do not last long.
pub(crate) fn hasty_client(urls: &[String]) -> LockClient {
    let builder = without_restart_guard(urls.to_vec()).node_timeout(Duration::from_millis(120));
    let builder = builder.retry(Duration::from_millis(1), Duration::from_millis(30));
    builder.build().expect("the settings are good")
}
