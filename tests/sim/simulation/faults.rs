//! Injects faults, and ends them.

use super::Simulation;
use crate::checker::Name;
use crate::clock::MILLIS;
use crate::context::Context;
use crate::network::Side;
use crate::node::{Health, Memory, TROUBLES};
use crate::options::{BrokenAssumption, Fault};
use crate::queue::Event;
use redlatch_protocol::engine::quorum;

impl Simulation {
    pub(super) fn fault(&mut self) {
        if self.context.has_faults_ended || self.context.options.faults.is_empty() {
            return;
        }
        let pause = self.context.random.below(self.context.options.fault_pause);
        self.context.queue.after(pause, Event::Fault);
        let fault = self.context.random.pick(&self.context.options.faults);
        let longest = self.context.random.pick(&[5, 50, 300, 1_000]) * MILLIS;
        let lasts = self.context.random.below(longest);
        match fault {
            Fault::Cut | Fault::Swallow | Fault::Stall => {
                self.inject_connection_fault(fault, lasts);
            }
            Fault::Clog => self.clog(lasts),
            Fault::Late => self.hold_back(),
            Fault::Stray => self.stray_from_now_on(lasts),
            Fault::Foreign => self.foreign_takes(lasts),
            Fault::LoseQueue => self.lose_queue(),
            Fault::Pause | Fault::Die | Fault::Leave | Fault::Cancel => {
                self.inject_client_fault(fault, lasts);
            }
            Fault::Evict => self.evict(),
            Fault::Promote => self.promote(),
            Fault::EvictMarker => self.evict_marker(),
            _ => self.inject_node_fault(fault, lasts),
        }
    }

    fn inject_connection_fault(&mut self, fault: Fault, lasts: u64) {
        let working = self.context.network.working();
        if working.is_empty() {
            return;
        }
        let connection = self.context.random.pick(&working);
        self.context.trace(|| {
            let it = &self.context.network.connections[connection];
            let client = it.client;
            let node = it.node;
            format!("{fault:?}: the connection from client {client} to node {node}, {lasts} ns")
        });
        let Context {
            network,
            queue,
            random,
            tally,
            ..
        } = &mut self.context;
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
        let Context {
            network,
            queue,
            random,
            options,
            tally,
            ..
        } = &mut self.context;
        let client = random.below(options.clients as u64) as usize;
        let least = if random.chance(700) {
            quorum(options.nodes)
        } else {
            1
        };
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
        self.context.held_until = self.context.held_until.max(until);
        self.context
            .trace(|| format!("what client {client} writes to {nodes:?} is held until {until}"));
    }

    fn clog(&mut self, lasts: u64) {
        let clients = self.clients.len() as u64;
        let Context {
            network,
            queue,
            random,
            options,
            tally,
            ..
        } = &mut self.context;
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
        self.context
            .trace(|| format!("{name} from client {client} to node {node} for {lasts} ns"));
    }

    fn inject_client_fault(&mut self, fault: Fault, lasts: u64) {
        let Self {
            context, clients, ..
        } = self;
        let index = context.random.below(clients.len() as u64) as usize;
        let client = &mut clients[index];
        context.trace(|| format!("{fault:?}: client {index}, if it is there, for {lasts} ns"));
        if fault == Fault::Die && client.is_alive {
            context.tally.fault("client dies");
            context.queue.after(lasts, Event::Rebirth { client: index });
            client.die(context);
        } else if fault == Fault::Leave && client.is_alive && !client.is_cancelled {
            context.tally.fault("client cancels its waits");
            client.cancel(context);
        } else if fault == Fault::Cancel && client.is_alive {
            client.cancel_call(context);
        } else if fault == Fault::Pause && client.paused_until <= context.queue.now() {
            context.tally.fault("client paused");
            client.pause(context, lasts);
        }
    }

    fn inject_node_fault(&mut self, fault: Fault, lasts: u64) {
        let index = self.context.random.below(self.nodes.len() as u64) as usize;
        let may_lose = self.may_lose_vote(index);
        let may_crash = may_lose || self.keeps_keys(index);
        let Self { context, nodes, .. } = self;
        let node = &mut nodes[index];
        context.trace(|| format!("{fault:?}: node {index}, if that is possible, for {lasts} ns"));
        let now = context.queue.now();
        match fault {
            Fault::Freeze if node.health == Health::Up => {
                context.tally.fault("node frozen");
                node.health = Health::Frozen;
                context.queue.after(lasts, Event::Thaw { node: index });
            }
            Fault::Crash if node.health != Health::Down && may_crash => {
                context.tally.fault("node crashes");
                context.queue.after(lasts, Event::Restart { node: index });
                node.crash(context);
                self.crashed(index);
            }
            Fault::FlushScripts => {
                context.tally.fault("scripts flushed");
                node.forget_scripts();
            }
            Fault::Trouble => {
                let mut trouble = context.random.pick(&TROUBLES);
                while context.options.broken_assumption == BrokenAssumption::NoneWithTwins
                    && !trouble.is_busy()
                {
                    trouble = context.random.pick(&TROUBLES);
                }
                context.tally.fault(trouble.name());
                context.trace(|| format!("node {index} says {}", trouble.text));
                node.refuse(Some(trouble), now + lasts);
            }
            Fault::Squat => {
                let key = format!("lock:{}", context.random.below(context.options.resources));
                let lasts = (lasts / MILLIS + 1).to_string();
                let node_now = node.clock.read(now);
                if !node.has_key(node_now, key.as_bytes()) {
                    context.tally.fault("WRONGTYPE");
                    node.run_foreign(context, &[b"LPUSH", key.as_bytes(), b"squatter"]);
                    node.run_foreign(context, &[b"PEXPIRE", key.as_bytes(), lasts.as_bytes()]);
                }
            }
            Fault::Exchange | Fault::Flush if !may_lose => {}
            Fault::Flush => {
                context.tally.fault("node flushed");
                node.flush(now);
                self.send_writes(index);
            }
            Fault::Exchange => {
                context.tally.fault("server exchanged");
                node.exchange(context);
            }
            Fault::Jump => {
                context.tally.fault("node clock jumps");
                node.clock
                    .jump(context.random.below(context.options.ttl.1 * MILLIS));
            }
            _ => {}
        }
    }

    /// A node evicts a key, as with `maxmemory`. Within the assumptions, only a key that is not
    /// needed: no request about it is in progress, and the remaining keys block every other
    /// majority.
    fn evict(&mut self) {
        let now = self.context.queue.now();
        let index = self.context.random.below(self.nodes.len() as u64) as usize;
        let locks = self.nodes[index].locks(now);
        let Some((key, _)) = locks.first().cloned() else {
            return;
        };
        let tokens: Vec<Name> = locks
            .into_iter()
            .filter(|it| it.0 == key)
            .map(|it| it.1)
            .collect();
        if self.context.options.broken_assumption == BrokenAssumption::Eviction
            || tokens.iter().all(|token| self.may_lose(&key, *token))
        {
            self.context.tally.fault("key evicted");
            self.context
                .trace(|| format!("node {index} evicts {tokens:?}"));
            self.nodes[index].run_foreign(&mut self.context, &[b"DEL", &key]);
        }
    }

    /// Is this lock safe without the key of one node?
    fn may_lose(&self, key: &[u8], token: Name) -> bool {
        let now = self.context.queue.now();
        let until = self.context.checker.held_until(token);
        let permit = self.context.checker.permit(token);
        let keeps = |node: &crate::node::Node| {
            let holders = node.holders(node.clock.read(now), key);
            holders.into_iter().any(|holder| {
                (holder.token, holder.permit) == (token, permit)
                    && now + holder.left * MILLIS * 99 / 100 >= until
            })
        };
        let keepers = self.nodes.iter().filter(|node| keeps(node)).count();
        let others = self.context.options.nodes - quorum(self.context.options.nodes);
        let is_needed = until > now && keepers <= others + 1;
        let is_resting = self.context.checker.is_left_over(token)
            || self.workers(|worker| worker.is_holding() && worker.holds(token)) > 0;
        is_resting && !is_needed
    }

    pub(super) fn thaw(&mut self, node: usize) {
        if !self.context.has_faults_ended {
            self.nodes[node].thaw(&mut self.context);
            self.send_writes(node);
        }
    }

    pub(super) fn restart(&mut self, node: usize) {
        if self.context.has_faults_ended || self.nodes[node].health != Health::Down {
            return;
        }
        let memory = match self.context.options.broken_assumption {
            BrokenAssumption::LostData => &[Memory::All, Memory::Nothing, Memory::Nothing][..],
            BrokenAssumption::LostSecond => &[Memory::LastSecondLost],
            BrokenAssumption::Restored => &[Memory::Snapshot],
            BrokenAssumption::NoneWithRegisters | BrokenAssumption::NoneWithTransactions
                if self.keeps_keys(node) =>
            {
                &[Memory::All]
            }
            BrokenAssumption::RegistersRestored => &[Memory::LastSecondLost],
            _ if self.context.options.restart_guard || self.context.options.registers.is_some() => {
                &[Memory::All, Memory::LastSecondLost, Memory::Nothing]
            }
            _ => &[Memory::All],
        };
        let memory = self.context.random.pick(memory);
        self.context.tally.fault(match memory {
            Memory::All => "node back with all data",
            Memory::LastSecondLost => "node back without the last second",
            Memory::Nothing => "node back empty",
            Memory::Snapshot => "node restored",
        });
        self.context
            .trace(|| format!("node {node} is back with {memory:?}"));
        let now = self.context.queue.now();
        self.nodes[node].restart(now, memory);
        self.restarted(node);
        if matches!(memory, Memory::LastSecondLost | Memory::Snapshot) {
            // Keys removed in that second may exist again.
            for (_, token) in self.nodes[node].locks(now) {
                self.context.checker.allow_leftover(token);
            }
        }
    }
}
