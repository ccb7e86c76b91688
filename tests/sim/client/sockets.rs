//! The sockets of a client, as the library's event loop sees them: connections of the simulated
//! network.

use super::Link;
use crate::clock::Clock;
use crate::context::Context;
use crate::mistake::Mistake;
use crate::network::{Read, Setup, Side};
use redlatch_protocol::engine::Node;
use redlatch_protocol::node::{
    Conversation, NodeError, Phase, Sockets as DrivenSockets, Whereabouts,
};
use redlatch_protocol::time::Time;
use std::io;
use std::time::Duration;

pub(super) struct Sockets<'a> {
    pub(super) name: (usize, u64),
    pub(super) clock: Clock,
    pub(super) links: &'a mut [Link],
    pub(super) context: &'a mut Context,
}

impl DrivenSockets for Sockets<'_> {
    fn time(&self) -> Time {
        self.clock.read(self.context.queue.now())
    }

    /// Nothing waits here, and what has arrived can be seen at any time.
    fn poll(&mut self, _: &mut impl Conversation, _: Option<Duration>) -> bool {
        true
    }

    /// Before anything that has arrived: each look is a new one.
    fn polled_at(&self) -> Time {
        Time::ZERO
    }

    fn is_finished(&self, node: Node) -> bool {
        match self.links[node.index()] {
            Link::Connected(connection) => {
                self.context.network.is_finished(connection, Side::Client)
            }
            Link::None | Link::Connecting(_) => false,
        }
    }

    fn is_readable(&self, node: Node) -> bool {
        let is_connected = matches!(self.links[node.index()], Link::Connected(_));
        is_connected && !self.context.options.has(Mistake::LooksAtEndsOnly)
    }

    fn read(&mut self, rounds: &mut impl Conversation, node: Node) {
        let now = self.time();
        let Self {
            name,
            links,
            context,
            ..
        } = self;
        while let Link::Connected(connection) = links[node.index()] {
            let most = match context.random.chance(context.options.split_permille) {
                true => context.random.between(1, 12) as usize,
                false => 16 * 1024,
            };
            match context.network.read(connection, Side::Client, most) {
                Read::Bytes(bytes) => {
                    rounds.received(now, node, bytes);
                    if rounds.is_down(node) {
                        context.trace(|| format!("client {name:?} gives {node:?} up"));
                        return;
                    }
                }
                Read::Empty => return,
                Read::Finished => {
                    context.trace(|| format!("client {name:?}: {node:?} has closed"));
                    let error = NodeError::Disconnected("closed by the server".to_owned());
                    rounds.closed(now, node, error);
                    return;
                }
            }
        }
    }

    fn follow(&mut self, rounds: &mut impl Conversation, node: Node) {
        let now = self.time();
        let is_due = |at| now >= at;
        if rounds.looks_at(node).is_some_and(is_due) {
            rounds.looking(node, now);
            self.look_for_master(rounds, node);
        }
        if rounds.inquires_at(node).is_some_and(is_due) {
            rounds.inquiring(node, now);
            self.inquire(rounds, node);
        }
        let link = &mut self.links[node.index()];
        let Context {
            network,
            queue,
            random,
            ..
        } = &mut *self.context;
        if rounds.is_down(node) {
            if let Link::Connecting(connection) | Link::Connected(connection) = *link {
                network.close(queue, random, connection);
                *link = Link::None;
            }
            if rounds.wants_connection(node, now) {
                rounds.connecting(node, now, Phase::Connecting);
                let (client, _) = self.name;
                *link = Link::Connecting(network.connect(queue, random, client, node.index()));
            }
            return;
        }
        let Link::Connecting(connection) = *link else {
            return;
        };
        match network.connections[connection].setup {
            Setup::Pending => {}
            Setup::Made => {
                *link = Link::Connected(connection);
                rounds.located(node, network.connections[connection].epoch, now);
                rounds.connected(node, now);
            }
            Setup::Refused => {
                *link = Link::None;
                let kind = io::ErrorKind::ConnectionRefused;
                let error = NodeError::Unreachable {
                    kind,
                    text: "refused".to_owned(),
                };
                rounds.closed(now, node, error);
            }
        }
    }

    fn write(&mut self, rounds: &mut impl Conversation, node: Node) {
        let Link::Connected(connection) = self.links[node.index()] else {
            return;
        };
        while !rounds.output(node).is_empty() {
            let Context {
                network,
                queue,
                random,
                options,
                ..
            } = &mut *self.context;
            let most = match random.chance(options.split_permille / 2) {
                true => random.between(1, 30) as usize,
                false => usize::MAX,
            };
            let output = rounds.output(node);
            let bytes = &output[..most.min(output.len())];
            let written = network.send(queue, random, connection, Side::Node, bytes);
            if written == 0 {
                return;
            }
            rounds.wrote(node, written);
        }
    }
}

impl Sockets<'_> {
    /// Those that know the master of a group are asked, although there is a connection. Some of
    /// them are out of date, and behind a name there may be any server.
    fn look_for_master(&mut self, rounds: &mut impl Conversation, node: Node) {
        let Link::Connected(connection) = self.links[node.index()] else {
            return;
        };
        let now = self.time();
        let Context {
            network,
            random,
            options,
            named,
            tally,
            has_faults_ended,
            ..
        } = &mut *self.context;
        let (Some(groups), Some(server)) =
            (&options.groups, network.connections[connection].server)
        else {
            return;
        };
        let (mut master, epoch) = named[node.index()];
        if !*has_faults_ended && random.chance(groups.astray_permille) {
            master = node.index() * groups.size + random.below(groups.size as u64) as usize;
        }
        let it_is = match master == server {
            true if random.chance(300) => Whereabouts::SameAddress,
            true => Whereabouts::Here,
            false => Whereabouts::Elsewhere,
        };
        if rounds.named(node, now, epoch, now, it_is) {
            tally.moves += 1;
        }
    }

    /// Asks the servers of the group for their histories. Some do not answer.
    fn inquire(&mut self, rounds: &mut impl Conversation, node: Node) {
        let Link::Connected(connection) = self.links[node.index()] else {
            return;
        };
        let now = self.time();
        let Context {
            network,
            queue,
            random,
            options,
            lineages,
            ..
        } = &mut *self.context;
        let (Some(groups), Some(server)) =
            (&options.groups, network.connections[connection].server)
        else {
            return;
        };
        let Some(master) = lineages[server].history(queue.now()) else {
            return;
        };
        let group = server / groups.size;
        for lineage in &lineages[group * groups.size..][..groups.size] {
            let history = lineage.history(queue.now());
            if let Some(mut history) = history.filter(|_| random.chance(700)) {
                if options.has(Mistake::CopiesAreWitnesses) {
                    history.former.clone_from(&master.former);
                    history.uptime = master.uptime;
                }
                rounds.heard(node, now, &history, &master);
            }
        }
    }
}
