//! Waiters of another program that live, renew their entries in the nodes' queue, and never claim
//! the lock that is reserved for them.

use super::Simulation;
use crate::clock::MILLIS;
use crate::node::Health;
use crate::options::IDLE_CLAIM;
use crate::queue::Event;
use redlatch_embedded::model::OwnedReply;
use redlatch_protocol::node::script;

/// For how long its entry is kept, in milliseconds.
const LEASE: u64 = 1_500;

/// A waiter that never claims.
#[derive(Clone, Debug)]
pub(super) struct IdleClient {
    name: Vec<u8>,
    /// The number that the first node gave it, or 0.
    number: i64,
    /// It reaches these nodes only.
    reaches: Vec<usize>,
}

const KEY: &[u8] = b"lock:0";

impl Simulation {
    pub(super) fn start_idle_clients(&mut self) {
        let Self { context, .. } = self;
        let nodes = context.options.nodes;
        for turn in 0..context.options.queueing.idle_clients {
            let first = context.random.below(nodes as u64) as usize;
            // All nodes, or only one of them.
            let is_far = context.random.chance(300);
            let reaches = if is_far {
                vec![first]
            } else {
                (0..nodes).collect()
            };
            let name = format!("idle waiter {turn:08}").into_bytes();
            self.idle_clients.push(IdleClient {
                name,
                number: 0,
                reaches,
            });
            let pause = context.random.below(500 * MILLIS);
            context.queue.after(pause, Event::Idle { turn });
        }
    }

    /// It asks its nodes, whose answers it ignores but for its number. At the end it leaves.
    pub(super) fn idle(&mut self, turn: usize) {
        let is_over = self.context.has_faults_ended;
        let IdleClient {
            name,
            number,
            reaches,
        } = self.idle_clients[turn].clone();
        let entry = format!("1 {IDLE_CLAIM} {LEASE}  idle").into_bytes();
        let lease = LEASE.to_string();
        let sent = number.to_string();
        let leave: [&[u8]; 8] = [
            b"EVAL",
            script::GIVE.source.as_bytes(),
            b"1",
            KEY,
            b"none",
            &name,
            b"",
            b"1",
        ];
        let queue: [&[u8]; 10] = [
            b"EVAL",
            script::QUEUE.source.as_bytes(),
            b"1",
            KEY,
            &name,
            sent.as_bytes(),
            b"none",
            &entry,
            lease.as_bytes(),
            b"1",
        ];
        let words = if is_over { &leave[..] } else { &queue };
        for index in reaches {
            let node = &mut self.nodes[index];
            if node.health != Health::Up {
                continue;
            }
            let reply = node.run_foreign(&mut self.context, words);
            if let (0, OwnedReply::Array(answers)) = (self.idle_clients[turn].number, &reply) {
                let number = answers.get(1).and_then(|answer| match answer {
                    OwnedReply::Integer(number) => Some(*number),
                    _ => None,
                });
                self.idle_clients[turn].number = number.unwrap_or(0);
            }
        }
        if !is_over {
            self.context.tally.fault("waiter that never claims");
            let pause = self.context.random.between(200, 700) * MILLIS;
            self.context.queue.after(pause, Event::Idle { turn });
        }
    }
}
