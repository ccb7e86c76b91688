//! Injects faults, and ends them.

use super::Simulation;
use crate::clock::MILLIS;
use crate::network::Side;
use crate::node::{Health, Memory, TROUBLES};
use crate::options::{Beyond, Fault};
use crate::queue::Event;
use crate::stage::Stage;
use redlatch::internal::engine::quorum;

impl Simulation {
    pub(super) fn fault(&mut self) {
        if self.stage.is_calm || self.stage.options.faults.is_empty() {
            return;
        }
        let pause = self.stage.random.below(self.stage.options.fault_pause);
        self.stage.queue.after(pause, Event::Fault);
        let fault = self.stage.random.pick(&self.stage.options.faults);
        let longest = self.stage.random.pick(&[5, 50, 300, 1_000]) * MILLIS;
        let lasts = self.stage.random.below(longest);
        match fault {
            Fault::Cut | Fault::Swallow | Fault::Stall => self.harm_connection(fault, lasts),
            Fault::Clog => self.clog(lasts),
            Fault::Late => self.hold_back(),
            Fault::Stray => self.stray_from_now_on(lasts),
            Fault::Pause | Fault::Die => self.harm_client(fault, lasts),
            Fault::Evict => self.evict(),
            _ => self.harm_node(fault, lasts),
        }
    }

    fn harm_connection(&mut self, fault: Fault, lasts: u64) {
        let working = self.stage.network.working();
        if working.is_empty() {
            return;
        }
        let connection = self.stage.random.pick(&working);
        self.stage.say(|| {
            let it = &self.stage.network.connections[connection];
            let (client, node) = (it.client, it.node);
            format!("{fault:?}: the connection from client {client} to node {node}, {lasts} ns")
        });
        let Stage { network, queue, random, tally, .. } = &mut self.stage;
        match fault {
            Fault::Cut => {
                tally.fault("connection reset");
                network.cut(queue, random, connection);
            }
            Fault::Swallow => {
                tally.fault("connection half-open");
                network.swallow(connection);
            }
            _ => {
                tally.fault("connection stalled");
                network.stall(connection, queue.now() + lasts);
            }
        }
    }

    /// A proxy before some of the nodes holds back the bytes that one client writes.
    fn hold_back(&mut self) {
        let Stage { network, queue, random, options, tally, .. } = &mut self.stage;
        let client = random.below(options.clients as u64) as usize;
        let least = if random.chance(700) { quorum(options.nodes) } else { 1 };
        let most = random.between(least as u64, options.nodes as u64) as usize;
        let nodes = random.subset(options.nodes, most);
        let longest = options.ttl.1 * MILLIS;
        let most = longest * random.pick(&[1, 2, 4]);
        let lasts = random.below(most);
        let until = queue.now() + options.node_timeout.as_nanos() as u64 * 11 + lasts;
        for connection in network.working() {
            let it = &network.connections[connection];
            if it.client == client && nodes.contains(&it.node) {
                tally.fault("requests held back");
                network.hold(connection, until);
            }
        }
        self.stage.held_until = self.stage.held_until.max(until);
        self.stage
            .say(|| format!("what client {client} writes to {nodes:?} is held until {until}"));
    }

    fn clog(&mut self, lasts: u64) {
        let clients = self.clients.len() as u64;
        let Stage { network, queue, random, options, tally, .. } = &mut self.stage;
        let client = random.below(clients) as usize;
        let node = random.below(options.nodes as u64) as usize;
        let (sides, name) = random.pick(&[
            (&[Side::Client][..], "answers clogged"),
            (&[Side::Node], "requests clogged"),
            (&[Side::Client, Side::Node], "both ways clogged"),
        ]);
        tally.fault(name);
        for side in sides {
            network.clog(client, node, *side, queue.now() + lasts);
        }
        self.stage.say(|| format!("{name} from client {client} to node {node} for {lasts} ns"));
    }

    fn harm_client(&mut self, fault: Fault, lasts: u64) {
        let Self { stage, clients, .. } = self;
        let index = stage.random.below(clients.len() as u64) as usize;
        let client = &mut clients[index];
        stage.say(|| format!("{fault:?}: client {index}, if it is there, for {lasts} ns"));
        if fault == Fault::Die && client.is_alive {
            stage.tally.fault("client dies");
            stage.queue.after(lasts, Event::Rebirth { client: index });
            client.die(stage);
        } else if fault == Fault::Pause && client.paused_until <= stage.queue.now() {
            stage.tally.fault("client paused");
            client.pause(stage, lasts);
        }
    }

    fn harm_node(&mut self, fault: Fault, lasts: u64) {
        let Self { stage, nodes, .. } = self;
        let index = stage.random.below(nodes.len() as u64) as usize;
        let node = &mut nodes[index];
        stage.say(|| format!("{fault:?}: node {index}, if that is possible, for {lasts} ns"));
        let now = stage.queue.now();
        match fault {
            Fault::Freeze if node.health == Health::Up => {
                stage.tally.fault("node frozen");
                node.health = Health::Frozen;
                stage.queue.after(lasts, Event::Thaw { node: index });
            }
            Fault::Crash if node.health != Health::Down => {
                stage.tally.fault("node crashes");
                stage.queue.after(lasts, Event::Restart { node: index });
                node.crash(stage);
            }
            Fault::FlushScripts => {
                stage.tally.fault("scripts flushed");
                node.forget_scripts();
            }
            Fault::Trouble => {
                let mut trouble = stage.random.pick(&TROUBLES);
                while stage.options.beyond == Beyond::NothingWithTwins && !trouble.is_busy() {
                    trouble = stage.random.pick(&TROUBLES);
                }
                stage.tally.fault(trouble.name());
                stage.say(|| format!("node {index} says {}", trouble.text));
                node.refuse(Some(trouble), now + lasts);
            }
            Fault::Squat => {
                let key = format!("lock:{}", stage.random.below(stage.options.resources));
                let lasts = (lasts / MILLIS + 1).to_string();
                let node_now = node.clock.read(now);
                if node.look(node_now, key.as_bytes()).is_none() {
                    stage.tally.fault("WRONGTYPE");
                    node.meddle(now, &[b"LPUSH", key.as_bytes(), b"squatter"]);
                    node.meddle(now, &[b"PEXPIRE", key.as_bytes(), lasts.as_bytes()]);
                }
            }
            Fault::Exchange => {
                stage.tally.fault("server exchanged");
                node.exchange(stage);
            }
            Fault::Jump => {
                stage.tally.fault("node clock jumps");
                node.clock.jump(stage.random.below(stage.options.ttl.1 * MILLIS));
            }
            _ => {}
        }
    }

    /// A node evicts a key, as with `maxmemory`. Within the assumptions, only a key that is not
    /// needed: no request about it is in progress, and the remaining keys block every other
    /// majority.
    fn evict(&mut self) {
        let now = self.stage.queue.now();
        let index = self.stage.random.below(self.nodes.len() as u64) as usize;
        let Some((key, token)) = self.nodes[index].locks(now).first().cloned() else { return };
        let until = self.stage.checker.held_until(token);
        let keeps = |node: &crate::node::Node| {
            let node_now = node.clock.read(now);
            node.look(node_now, &key).is_some_and(|(name, left)| {
                name == token && now + left * MILLIS * 99 / 100 >= until
            })
        };
        let keepers = self.nodes.iter().filter(|node| keeps(node)).count();
        let others = self.stage.options.nodes - quorum(self.stage.options.nodes);
        let is_needed = until > now && keepers <= others + 1;
        let is_resting = self.stage.checker.is_left_over(token)
            || self.workers(|worker| worker.is_holding() && worker.holds(token)) > 0;
        if self.stage.options.beyond == Beyond::Eviction || is_resting && !is_needed {
            self.stage.tally.fault("key evicted");
            self.stage.say(|| format!("node {index} evicts {token:?}"));
            self.nodes[index].meddle(now, &[b"DEL", &key]);
        }
    }

    pub(super) fn thaw(&mut self, node: usize) {
        if !self.stage.is_calm {
            self.nodes[node].thaw(&mut self.stage);
        }
    }

    pub(super) fn restart(&mut self, node: usize) {
        if self.stage.is_calm || self.nodes[node].health != Health::Down {
            return;
        }
        let memory = match self.stage.options.beyond {
            Beyond::LostData => &[Memory::All, Memory::Nothing, Memory::Nothing][..],
            Beyond::LostSecond => &[Memory::LastSecondLost],
            Beyond::Restored => &[Memory::Snapshot],
            _ if self.stage.options.restart_guard => {
                &[Memory::All, Memory::LastSecondLost, Memory::Nothing]
            }
            _ => &[Memory::All],
        };
        let memory = self.stage.random.pick(memory);
        self.stage.tally.fault(match memory {
            Memory::All => "node back with all data",
            Memory::LastSecondLost => "node back without the last second",
            Memory::Nothing => "node back empty",
            Memory::Snapshot => "node restored",
        });
        self.stage.say(|| format!("node {node} is back with {memory:?}"));
        let now = self.stage.queue.now();
        self.nodes[node].restart(now, memory);
        if matches!(memory, Memory::LastSecondLost | Memory::Snapshot) {
            // Keys removed in that second may exist again.
            for (_, token) in self.nodes[node].locks(now) {
                self.stage.checker.excuse(token);
            }
        }
    }
}
