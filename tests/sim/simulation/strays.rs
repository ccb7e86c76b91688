//! When a reply that nobody asked for may arrive. RESP cannot tell one that arrives while a plain
//! `SET` is unanswered from that command's answer, unless it is an error; at all other times it
//! must do no harm.

use super::Simulation;
use crate::clock::MILLIS;
use crate::node::are_scripts;
use crate::options::Beyond;
use crate::stage::Stage;
use crate::stray::{Stray, What};
use redlatch::internal::engine::quorum;

impl Simulation {
    /// Replies stray on some of a client's connections, often to a majority of the nodes.
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

    /// A reply arrives that nobody asked for, if it may.
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
        }
        network.deliver(stray.connection, &stray.bytes);
        let stage = &self.stage;
        stage.say(|| {
            let text = stage.strays[index].bytes.escape_ascii();
            format!("client {client} is sent {text} by node {node}, unasked for")
        });
        self.drive(client, self.clients[client].name.1);
    }

    /// May it arrive now? Between two replies only, and, unless it is an error, while no plain
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
            // What follows an error counts for nothing until a script has shown the order.
            What::Error => true,
            // Either everything has been carried out and answered, or it is scripts that have not.
            // What has begun may become a `SET`.
            _ => {
                let unread = self.stage.network.unread(connection);
                are_scripts(&[node.begun(connection), unread].concat())
            }
        }
    }
}
