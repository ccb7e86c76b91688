//! Other programs on the nodes: one that takes locks by plain `SET`s and knows no queue, and ones
//! that delete the keys of queues.

use super::Simulation;
use crate::checker::name;
use crate::clock::MILLIS;
use crate::node::Health;
use crate::options::BrokenAssumption;
use crate::queue::Event;
use redlatch_embedded::model::OwnedReply;
use redlatch_protocol::engine::quorum;

/// The number of the client that stands for that program.
const FOREIGN: usize = 99;

/// A lock of that program.
#[derive(Clone, Debug)]
pub(super) struct ForeignLock {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Simulation {
    /// A program that knows no queue asks the nodes once, and keeps the lock for a while if a
    /// majority grants it. Its commands arrive at once.
    pub(super) fn foreign_takes(&mut self, lasts: u64) {
        let options = &self.context.options;
        let is_unfit = options.restart_guard || options.twins.is_some();
        if is_unfit || options.broken_assumption != BrokenAssumption::None {
            // The program has no restart guard, and does not tell servers apart.
            return;
        }
        let quorum = quorum(options.nodes);
        let ttl = options.ttl.1;
        let resource = self.context.random.below(self.context.options.resources);
        let key = format!("lock:{resource}").into_bytes();
        let mut value = self.context.random.number().to_be_bytes().to_vec();
        value.extend_from_slice(b"foreign-----");
        let turn = self.foreign.len();
        let token = name(&value);
        let now = self.context.queue.now();
        let millis = ttl.to_string();
        let words: [&[u8]; 6] = [b"SET", &key, &value, b"NX", b"PX", millis.as_bytes()];
        let mut granted = 0;
        for node in self
            .nodes
            .iter_mut()
            .filter(|node| node.health == Health::Up)
        {
            granted += usize::from(node.run_foreign(&mut self.context, &words) == OwnedReply::OK);
        }
        self.foreign.push(ForeignLock { key, value });
        self.context.checker.drawn((FOREIGN, turn as u64), token);
        if granted < quorum {
            return self.foreign(turn);
        }
        self.context.tally.fault("lock taken by another program");
        self.context
            .trace(|| format!("another program holds {resource} by {token:?}"));
        let until = now + ttl * MILLIS * 95 / 100;
        self.context
            .checker
            .held_by_foreigner(resource, token, now, until);
        let rest = lasts.min(until - now);
        self.context.queue.after(rest, Event::Foreign { turn });
    }

    /// It releases its lock: compares and deletes.
    pub(super) fn foreign(&mut self, turn: usize) {
        let ForeignLock { key, value } = self.foreign[turn].clone();
        let now = self.context.queue.now();
        self.context.checker.left(name(&value), now);
        for node in self
            .nodes
            .iter_mut()
            .filter(|node| node.health == Health::Up)
        {
            let held = node.run_foreign(&mut self.context, &[b"GET", &key]);
            if held == OwnedReply::Bulk(value.clone()) {
                node.run_foreign(&mut self.context, &[b"DEL", &key]);
            }
        }
    }

    /// A node loses some keys of queues.
    pub(super) fn lose_queue(&mut self) {
        let Self { context, nodes, .. } = self;
        let index = context.random.below(nodes.len() as u64) as usize;
        let now = context.queue.now();
        let part = context
            .random
            .pick(&[&b":redlatch:"[..], b":queue", b":lease:", b":called"]);
        let keys = nodes[index].keys_of_queues(now);
        let is_part = |key: &[u8]| key.windows(part.len()).any(|window| window == part);
        for key in keys.into_iter().filter(|key| is_part(key)) {
            context.tally.fault("key of a queue lost");
            context.trace(|| format!("node {index} loses {}", key.escape_ascii()));
            nodes[index].run_foreign(context, &[b"DEL", &key]);
        }
    }
}
