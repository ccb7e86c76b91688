//! When an unsolicited reply may arrive. While a plain `SET` is unanswered, RESP cannot
//! distinguish it from that command's reply, unless it is an error. At all other times it must have
//! no effect.

use super::Simulation;
use crate::clock::MILLIS;
use crate::context::Context;
use crate::node::are_scripts;
use crate::options::BrokenAssumption;
use crate::stray::{Stray, What};
use redlatch_protocol::engine::quorum;

impl Simulation {
    /// Unsolicited replies arrive on some of a client's connections, often from a majority of the
    /// nodes.
    pub(super) fn stray_from_now_on(&mut self, lasts: u64) {
        let Context {
            network,
            queue,
            random,
            options,
            ..
        } = &mut self.context;
        let client = random.below(options.clients as u64) as usize;
        let least = if random.chance(700) {
            quorum(options.nodes)
        } else {
            1
        };
        let count = random.between(least as u64, options.nodes as u64) as usize;
        let nodes = random.subset(options.nodes, count);
        let repeats = random.chance(700);
        let until = queue.now() + lasts + 20 * MILLIS;
        for connection in network.working() {
            let (owner, node) = self.context.network.ends(connection);
            if owner != client || !nodes.contains(&node) {
                continue;
            }
            if repeats {
                self.context.network.connections[connection].repeated_until = until;
            } else {
                let stray = Stray::unasked(&mut self.context, connection);
                self.context.send_stray(stray);
            }
        }
    }

    /// An unsolicited reply arrives, if it may.
    pub(super) fn stray(&mut self, index: usize) {
        if self.context.has_faults_ended || !self.may_arrive(&self.context.strays[index]) {
            return;
        }
        let Context {
            network,
            strays,
            tally,
            checker,
            options,
            ..
        } = &mut self.context;
        let stray = &strays[index];
        let (client, node) = network.ends(stray.connection);
        tally.fault(match stray.what {
            What::Repeated => "reply repeated",
            What::Error => "error unasked for",
            What::Push => "push message",
        });
        if stray.is_error() {
            checker.note_unsolicited_error(self.clients[client].name, options.server(node));
            network.connections[stray.connection].is_disturbed = true;
        }
        network.deliver(stray.connection, &stray.bytes);
        let context = &self.context;
        context.trace(|| {
            let text = context.strays[index].bytes.escape_ascii();
            format!("client {client} is sent {text} by node {node}, unasked for")
        });
        self.drive(client, self.clients[client].name.1);
    }

    /// May it arrive now? Only between two replies, and, unless it is an error, while no plain
    /// `SET` is unanswered.
    fn may_arrive(&self, stray: &Stray) -> bool {
        let Stray {
            connection, what, ..
        } = *stray;
        let node = &self.nodes[self
            .context
            .options
            .server(self.context.network.ends(connection).1)];
        if !self.context.network.is_between_replies(connection) {
            return false;
        }
        match what {
            What::Push => node.may_push(connection),
            _ if self.context.options.broken_assumption == BrokenAssumption::Strays => true,
            // Replies after an error do not count until a script has shown the order. Two errors
            // instead of a whole greeting leave a connection without an id, which no client can
            // end.
            What::Error => {
                node.is_numbered(connection)
                    || !self.context.network.connections[connection].is_disturbed
            }
            // All commands have their replies, or only scripts have not.
            // An incomplete command may become a `SET`.
            _ => {
                let unread = self.context.network.unread(connection);
                are_scripts(&[node.begun(connection), unread].concat())
            }
        }
    }
}
