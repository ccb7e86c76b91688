//! What goes wrong, and how it is put right again.

use super::Simulation;
use crate::clock::MILLIS;
use crate::network::Side;
use crate::node::Health;
use crate::options::{Beyond, Fault};
use crate::queue::Event;
use crate::stage::Stage;

impl Simulation {
    pub(super) fn fault(&mut self) {
        if self.stage.is_calm || self.stage.options.faults.is_empty() {
            return;
        }
        let pause = self.stage.random.below(self.stage.options.fault_pause);
        self.stage.queue.after(pause, Event::Fault);
        let fault = self.stage.random.pick(&self.stage.options.faults);
        self.inject(fault);
    }

    pub(super) fn inject(&mut self, fault: Fault) {
        self.faults += 1;
        let Self { stage, nodes, clients, .. } = self;
        let node = stage.random.below(nodes.len() as u64) as usize;
        let client = stage.random.below(clients.len() as u64) as usize;
        let longest = stage.random.pick(&[5, 50, 300, 1_000]) * MILLIS;
        let while_ = stage.random.below(longest);
        stage.say(|| format!("{fault:?}: client {client} or node {node} for {while_} ns"));
        let Stage { network, queue, random, .. } = stage;
        match fault {
            Fault::Cut | Fault::Swallow | Fault::Stall => {
                let working = network.working();
                if !working.is_empty() {
                    match (random.pick(&working), fault) {
                        (connection, Fault::Cut) => network.cut(queue, random, connection),
                        (connection, Fault::Swallow) => network.swallow(connection),
                        (connection, _) => network.stall(connection, queue.now() + while_),
                    }
                }
            }
            Fault::Clog => {
                let until = queue.now() + while_;
                for side in
                    random.pick(&[&[Side::Client][..], &[Side::Node], &[Side::Client, Side::Node]])
                {
                    network.clog(client, node, *side, until);
                }
            }
            Fault::Freeze if nodes[node].health == Health::Up => {
                nodes[node].health = Health::Frozen;
                queue.after(while_, Event::Thaw { node });
            }
            Fault::Crash if nodes[node].health != Health::Down => {
                queue.after(while_, Event::Restart { node });
                nodes[node].crash(stage);
            }
            Fault::Pause if clients[client].paused_until <= queue.now() => {
                clients[client].pause(stage, while_);
            }
            Fault::Die if clients[client].is_alive => {
                queue.after(while_, Event::Rebirth { client });
                clients[client].die(stage);
            }
            Fault::FlushScripts => nodes[node].forget_scripts(),
            Fault::Freeze | Fault::Crash | Fault::Pause | Fault::Die => {}
        }
    }

    pub(super) fn thaw(&mut self, node: usize) {
        if !self.stage.is_calm {
            self.nodes[node].thaw(&mut self.stage);
        }
    }

    pub(super) fn restart(&mut self, node: usize) {
        if !self.stage.is_calm && self.nodes[node].health == Health::Down {
            let options = &self.stage.options;
            let may_lose = options.restart_guard || options.beyond == Beyond::LostData;
            let keeps_data = !(may_lose && self.stage.random.chance(700));
            self.stage.say(|| format!("node {node} is back, keeping its data: {keeps_data}"));
            self.nodes[node].restart(self.stage.queue.now(), keeps_data);
        }
    }
}
