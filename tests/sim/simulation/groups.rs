//! Nodes that are replicated groups: who is the master, and how its writes come to the others, late
//! and in order. A replica that is promoted lacks the last of them.
//!
//! A replaced master goes on for a while, with the clients and the replicas that it has. It stops
//! within the bound, also if it was frozen meanwhile; if replicas must acknowledge each vote, it
//! goes on for as long as it likes. Its successor may die before it has learned so, and then it is
//! elected again in the same reign. The clocks of a group's servers differ by a little, and the end
//! of a key is a time that the master of then has set.

use super::Simulation;
use crate::clock::{MILLIS, SECONDS};
use crate::context::Context;
use crate::lineage::Lineage;
use crate::node::{Health, Memory, Written};
use crate::queue::Event;
use redlatch_protocol::node::MARKER;
use std::collections::VecDeque;
use std::ops::Range;

/// How long a server that cannot follow its master waits before it tries again.
const RETRY: u64 = 20 * MILLIS;

/// The groups of a history.
#[derive(Debug, Default)]
pub(super) struct Groups {
    size: usize,
    /// The present master of each group, as its failover authority names it.
    masters: Vec<usize>,
    servers: Vec<Server>,
    /// How many elections there were, and links.
    epoch: u64,
    links: u64,
}

#[derive(Debug, Default)]
struct Server {
    /// When it was elected last.
    epoch: u64,
    /// Until when it goes on, if it was replaced.
    until: u64,
    link: Option<Link>,
}

/// From a master to a replica.
#[derive(Debug)]
struct Link {
    number: u64,
    master: usize,
    /// Writes that have not arrived, and when the last of them will.
    flying: VecDeque<Written>,
    last_arrival: u64,
}

impl Groups {
    fn of(&self, server: usize) -> usize {
        server / self.size
    }

    fn servers(&self, group: usize) -> Range<usize> {
        group * self.size..(group + 1) * self.size
    }

    fn is_master(&self, server: usize) -> bool {
        self.masters[self.of(server)] == server
    }
}

impl Simulation {
    pub(super) fn form_groups(&mut self) {
        let options = &self.context.options;
        let Some(size) = options.groups.as_ref().map(|groups| groups.size) else {
            return;
        };
        let masters = (0..options.nodes).map(|group| group * size).collect();
        let servers = (0..options.servers()).map(|_| Server::default()).collect();
        self.groups = Groups {
            size,
            masters,
            servers,
            epoch: 0,
            links: 0,
        };
        self.context.named = self
            .groups
            .masters
            .iter()
            .map(|master| (*master, 0))
            .collect();
        let masters = &self.groups.masters;
        let first = |server: usize| {
            let master = masters[server / size];
            let id = &self.nodes[master].run_id;
            Lineage::first(&self.nodes[server].run_id, id, server == master)
        };
        self.context.lineages = (0..self.nodes.len()).map(first).collect();
        for server in 0..self.nodes.len() {
            self.nodes[server].replicate(!self.groups.is_master(server));
            self.follow(server);
        }
    }

    /// To which server a new connection to this node leads, and of which epoch that is.
    pub(super) fn lead(&mut self, node: usize) -> (usize, u64) {
        let Some(groups) = &self.context.options.groups else {
            return (self.context.options.server(node), 0);
        };
        let astray = if self.context.has_faults_ended {
            0
        } else {
            groups.astray_permille
        };
        let mut server = self.groups.masters[node];
        if self.context.random.chance(astray) {
            server = node * groups.size + self.context.random.below(groups.size as u64) as usize;
        }
        (server, self.groups.servers[server].epoch)
    }

    /// The servers that these nodes lead to.
    pub(super) fn masters(&self, nodes: Vec<usize>) -> Vec<usize> {
        if self.context.options.groups.is_none() {
            return nodes;
        }
        nodes
            .into_iter()
            .map(|node| self.groups.masters[node])
            .collect()
    }

    /// A server may have written: its replicas will get that.
    pub(super) fn send_writes(&mut self, server: usize) {
        for written in self.nodes[server].take_unsent() {
            for replica in self.groups.servers(self.groups.of(server)) {
                let link = self.groups.servers[replica].link.as_ref();
                if link.is_some_and(|link| link.master == server) {
                    self.send_write(replica, written.clone());
                }
            }
        }
    }

    fn send_write(&mut self, replica: usize, written: Written) {
        let delay = self.lag();
        let now = self.context.queue.now();
        let Some(link) = &mut self.groups.servers[replica].link else {
            return;
        };
        link.flying.push_back(written);
        link.last_arrival = link.last_arrival.max(now + delay);
        let event = Event::Replicate {
            server: replica,
            link: link.number,
        };
        self.context.queue.at(link.last_arrival, event);
    }

    fn lag(&mut self) -> u64 {
        let Some(groups) = &self.context.options.groups else {
            return 0;
        };
        let delay = self.context.random.between(groups.lag.0, groups.lag.1);
        let is_late = self.context.random.chance(groups.late_permille);
        if is_late && !self.context.has_faults_ended {
            return delay * self.context.random.between(2, 40);
        }
        delay
    }

    /// The next write arrives at a replica.
    pub(super) fn replicate(&mut self, server: usize, number: u64) {
        let link = self.groups.servers[server].link.as_mut();
        let Some(link) = link.filter(|link| link.number == number) else {
            return;
        };
        if !self.nodes[server].is_up() {
            // It lies in its socket.
            return self.context.queue.after(
                MILLIS,
                Event::Replicate {
                    server,
                    link: number,
                },
            );
        }
        let Some(written) = link.flying.pop_front() else {
            return;
        };
        let offset = written.0;
        let master = self.context.lineages[link.master].clone();
        self.context.lineages[server].follow(&master, self.nodes[server].offset());
        self.nodes[server].apply(&written);
        let delay = self.lag();
        self.context.queue.after(
            delay,
            Event::Acked {
                server,
                link: number,
                offset,
            },
        );
    }

    /// The acknowledgement of a write arrives at the master. If that is frozen, it is read first
    /// when the master goes on.
    pub(super) fn acknowledge(&mut self, server: usize, number: u64, offset: u64) {
        let link = self.groups.servers[server].link.as_ref();
        let Some(master) = link.filter(|it| it.number == number).map(|it| it.master) else {
            return;
        };
        self.nodes[master].acknowledged(&mut self.context, server, offset);
        self.send_writes(master);
    }

    /// A command has waited for replicas for as long as it may.
    pub(super) fn unblock(&mut self, connection: usize) {
        if let Some(server) = self.context.network.connections[connection].server {
            self.nodes[server].serve(&mut self.context, connection);
            self.send_writes(server);
        }
    }

    fn unlink(&mut self, server: usize) {
        if let Some(link) = self.groups.servers[server].link.take() {
            self.nodes[link.master].abandoned_by(server);
        }
    }

    /// A server learns who is the master, and follows it from now on.
    pub(super) fn follow(&mut self, server: usize) {
        let master = self.groups.masters[self.groups.of(server)];
        let is_linked = self.groups.servers[server]
            .link
            .as_ref()
            .is_some_and(|link| link.master == master);
        if server == master || is_linked || self.nodes[server].health == Health::Down {
            return;
        }
        let options = self.context.options.groups.as_ref();
        let is_endless = options.is_some_and(|groups| groups.is_acknowledged);
        let is_frozen = self.nodes[server].health == Health::Frozen;
        if is_frozen && (is_endless || self.nodes[server].is_replica()) {
            return self.context.queue.after(RETRY, Event::Follow { server });
        }
        if !self.nodes[server].is_replica() {
            let permille = options.map_or(0, |groups| groups.closing_permille);
            // A frozen one must not carry out later what lies in its sockets.
            let is_closing = is_frozen || self.context.random.chance(permille);
            self.context
                .trace(|| format!("server {server} is a replica from now on"));
            self.nodes[server].demote(&mut self.context, is_closing);
            self.context.lineages[server].demote();
            self.abandon(server);
        }
        if self.nodes[master].health != Health::Up {
            return self.context.queue.after(RETRY, Event::Follow { server });
        }
        self.unlink(server);
        self.groups.links += 1;
        let number = self.groups.links;
        let flying = VecDeque::new();
        self.groups.servers[server].link = Some(Link {
            number,
            master,
            flying,
            last_arrival: 0,
        });
        let whole = self.nodes[master].whole(self.context.queue.now());
        self.send_write(server, whole);
    }

    /// A server has no replicas any more. They will look for the master.
    fn abandon(&mut self, master: usize) {
        for replica in self.groups.servers(self.groups.of(master)) {
            let link = self.groups.servers[replica].link.as_ref();
            if link.is_some_and(|link| link.master == master) {
                self.unlink(replica);
                self.follow_soon(replica);
            }
        }
    }

    fn follow_soon(&mut self, server: usize) {
        let longest = self.context.random.pick(&[5, 20, 20, 500]) * MILLIS;
        let delay = self.context.random.below(longest);
        self.context.queue.after(delay, Event::Follow { server });
    }

    /// A server of a group has crashed.
    pub(super) fn crashed(&mut self, server: usize) {
        if self.context.options.groups.is_some() {
            self.context.lineages[server].crash();
            self.unlink(server);
            self.abandon(server);
        }
    }

    /// A server of a group is back: as the master, in a reign of its own, unless it knows better.
    pub(super) fn restarted(&mut self, server: usize) {
        if self.context.options.groups.is_none() {
            return;
        }
        let now = self.context.queue.now();
        let until = self.groups.servers[server].until;
        let goes_on = self.groups.is_master(server) || now < until;
        self.nodes[server].replicate(!goes_on);
        let run_id = &self.nodes[server].run_id;
        self.context.lineages[server].restart(now, run_id, goes_on);
        if !self.groups.is_master(server) {
            let at = if goes_on { until } else { now + RETRY };
            self.context.queue.at(at, Event::Follow { server });
        }
        self.excuse(self.groups.of(server));
    }

    /// What was removed may exist again on another server of a group.
    fn excuse(&mut self, group: usize) {
        for server in self.groups.servers(group) {
            for (_, token) in self.nodes[server].locks(self.context.queue.now()) {
                self.context.checker.allow_leftover(token);
            }
        }
    }

    /// Another server of a group becomes the master.
    pub(super) fn promote(&mut self) {
        let Some(groups) = self.context.options.groups.clone() else {
            return;
        };
        let group = self.context.random.below(self.groups.masters.len() as u64) as usize;
        let master = self.groups.masters[group];
        let others = self
            .groups
            .servers(group)
            .filter(|it| self.nodes[*it].is_up());
        let others: Vec<usize> = others.filter(|it| *it != master).collect();
        if others.is_empty() {
            return;
        }
        let server = self.context.random.pick(&others);
        let is_elected_again = !self.nodes[server].is_replica();
        let is_down = self.nodes[master].health == Health::Down;
        if !is_down && (is_elected_again || self.context.random.chance(300)) {
            let lasts = self.context.random.below(SECONDS);
            self.context
                .queue
                .after(lasts, Event::Restart { node: master });
            self.nodes[master].crash(&mut self.context);
            self.crashed(master);
        }
        self.excuse(group);
        self.part(master);
        self.unlink(server);
        self.groups.epoch += 1;
        self.context.tally.elections += 1;
        self.groups.masters[group] = server;
        self.groups.servers[server].epoch = self.groups.epoch;
        self.context.named[group] = (server, self.groups.epoch);
        self.context
            .trace(|| format!("server {server} replaces {master}"));
        if is_elected_again {
            self.context.tally.fault("master elected again");
            self.nodes[server].end_all(&mut self.context);
        } else {
            self.context.tally.fault("replica promoted");
            let is_closing = self.context.random.chance(groups.closing_permille);
            self.begin_reign(server);
            if is_closing {
                self.nodes[server].end_all(&mut self.context);
            }
        }
        let now = self.context.queue.now();
        // The clocks by which clients count it drift.
        let longest = match groups.is_acknowledged {
            true => 2 * SECONDS,
            false => groups.bound.as_nanos() as u64 * 97 / 100,
        };
        self.groups.servers[master].until = match is_elected_again {
            true => now,
            false => now + self.context.random.below(longest),
        };
        let until = self.groups.servers[master].until;
        self.context
            .queue
            .at(until, Event::Follow { server: master });
        for replica in self
            .groups
            .servers(group)
            .filter(|it| ![server, master].contains(it))
        {
            self.follow_soon(replica);
        }
    }

    /// A replica becomes the master, in a reign of its own.
    fn begin_reign(&mut self, server: usize) {
        let id = format!("{}e{}", server, self.groups.epoch);
        let offset = self.nodes[server].offset();
        let former = self.context.lineages[server].promote(&id, offset);
        self.nodes[server].promote(id, former);
    }

    /// Some clients lose their connections to a server that is replaced, and find its successor.
    /// The others go on with it.
    fn part(&mut self, server: usize) {
        let permille = self.context.random.pick(&[0, 300, 700]);
        for connection in self.context.network.working() {
            let is_one = self.context.network.connections[connection].server == Some(server);
            if is_one && self.context.random.chance(permille) {
                let Context {
                    network,
                    queue,
                    random,
                    ..
                } = &mut self.context;
                network.cut(queue, random, connection);
            }
        }
    }

    /// A group loses its marker.
    pub(super) fn evict_marker(&mut self) {
        let master = self.context.random.pick(&self.groups.masters);
        self.context.tally.fault("marker evicted");
        self.nodes[master].run_foreign(&mut self.context, &[b"DEL", MARKER]);
        self.send_writes(master);
    }

    /// The faults are over: all servers of all groups work, and follow the masters.
    pub(super) fn heal_groups(&mut self) {
        let servers = if self.context.options.groups.is_some() {
            self.nodes.len()
        } else {
            0
        };
        for server in 0..servers {
            if self.nodes[server].health == Health::Down {
                self.nodes[server].restart(self.context.queue.now(), Memory::All);
                self.restarted(server);
            }
            self.nodes[server].thaw(&mut self.context);
            self.send_writes(server);
        }
        (0..servers).for_each(|server| self.follow(server));
    }
}
