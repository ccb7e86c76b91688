//! When an unsolicited reply may arrive. While a plain `SET` is unanswered, RESP cannot tell it
//! from that command's reply, unless it is an error. At all other times it must have no effect.

use super::Simulation;
use crate::clock::MILLIS;
use crate::node::are_scripts;
use crate::options::Beyond;
use crate::stage::Stage;
use crate::stray::{Stray, What};
use redlatch::internal::engine::quorum;

impl Simulation {
    /// Unsolicited replies arrive on some of a client's connections, often from a majority of the
    /// nodes.
    pub(super) fn stray_from_now_on(&mut self, lasts: u64) {
        let Stage { network, queue, random, options, .. } = &mut self.stage;
        let client = random.below(options.clients as u64) as usize;
        let least = if random.chance(700) { quorum(options.nodes) } else { 1 };
        let count = random.between(least as u64, options.nodes as u64) as usize;
        let nodes = random.subset(options.nodes, count);
        let repeats = random.chance(700);
        let until = queue.now() + lasts + 20 * MILLIS;
        for connection in network.working() {
            let (owner, node) = self.stage.network.ends(connection);
            if owner != client || !nodes.contains(&node) {
                continue;
            }
            if repeats {
                self.stage.network.connections[connection].repeated_until = until;
            } else {
                let stray = Stray::unasked(&mut self.stage, connection);
                self.stage.send_stray(stray);
            }
        }
    }

    /// An unsolicited reply arrives, if it may.
    pub(super) fn stray(&mut self, index: usize) {
        if self.stage.is_calm || !self.may_arrive(&self.stage.strays[index]) {
            return;
        }
        let Stage { network, strays, tally, checker, options, .. } = &mut self.stage;
        let stray = &strays[index];
        let (client, node) = network.ends(stray.connection);
        tally.fault(match stray.what {
            What::Repeated => "reply repeated",
            What::Error => "error unasked for",
            What::Push => "push message",
        });
        if stray.is_error() {
            checker.pardon(self.clients[client].name, options.server(node));
            network.connections[stray.connection].is_disturbed = true;
        }
        network.deliver(stray.connection, &stray.bytes);
        let stage = &self.stage;
        stage.say(|| {
            let text = stage.strays[index].bytes.escape_ascii();
            format!("client {client} is sent {text} by node {node}, unasked for")
        });
        self.drive(client, self.clients[client].name.1);
    }

    /// May it arrive now? Only between two replies, and, unless it is an error, while no plain
    /// `SET` is unanswered.
    fn may_arrive(&self, stray: &Stray) -> bool {
        let Stray { connection, what, .. } = *stray;
        let node = &self.nodes[self.stage.options.server(self.stage.network.ends(connection).1)];
        if !self.stage.network.is_between_replies(connection) {
            return false;
        }
        match what {
            What::Push => node.may_push(connection),
            _ if self.stage.options.beyond == Beyond::Strays => true,
            // Replies after an error do not count until a script has shown the order. Two errors
            // instead of a whole greeting leave a connection without an id, which no client can
            // end.
            What::Error => {
                node.is_numbered(connection)
                    || !self.stage.network.connections[connection].is_disturbed
            }
            // All commands have their replies, or only scripts have not.
            // An incomplete command may become a `SET`.
            _ => {
                let unread = self.stage.network.unread(connection);
                are_scripts(&[node.begun(connection), unread].concat())
            }
        }
    }
}
