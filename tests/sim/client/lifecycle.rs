//! What happens to a client from outside: its wall clock, pauses, its death, and the end of all
//! requests.

use super::{Client, Link};
use crate::clock::MICROS;
use crate::context::Context;
use crate::mistake::Mistake;
use crate::queue::Event;
use crate::worker::Worker;
use redlatch_protocol::engine::Node;

/// The begin of histories, by a correct wall clock.
const WALL: u64 = 1_700_000_000_000_000;

impl Client {
    /// Microseconds since 1970 by its wall clock.
    pub(crate) fn wall(&self, context: &Context) -> u64 {
        WALL + self.wall_offset + context.queue.now() / MICROS
    }

    /// For a client whose threads request nothing any more: reads the bytes that have arrived, and
    /// processes deadlines.
    pub(crate) fn settle(&mut self, context: &mut Context) {
        self.take_in(context);
        self.flush(context);
    }

    /// The number of unanswered commands and of pending releases on all nodes, and of waiting
    /// threads.
    pub(crate) fn load(&mut self) -> (usize, usize, usize) {
        let loads: Vec<_> = (0..self.links.len())
            .map(|node| self.rounds.session(Node::new(node)).load())
            .collect();
        let (in_flight, pending_releases): (Vec<usize>, Vec<usize>) = loads.into_iter().unzip();
        (
            in_flight.iter().sum(),
            pending_releases.iter().sum(),
            self.rounds.waiters().count(),
        )
    }

    /// The number of waiters that are remembered, and that the nodes notify.
    pub(crate) fn queue_load(&self) -> (usize, usize) {
        self.rounds.queue_load()
    }

    /// Pauses the client: no thread runs.
    pub(crate) fn pause(&mut self, context: &mut Context, pause: u64) {
        let now = context.queue.now();
        self.paused_until = now + pause;
        self.paused += pause;
        if context.options.mistake == Some(Mistake::ClockStopsInSuspend) {
            self.clock.stop(pause);
            context.checker.client_clock_stopped(self.name, now, pause);
        }
    }

    /// Cancels all waits of the client, as in `src/backend/cancellation.rs`.
    pub(crate) fn cancel(&mut self, context: &mut Context) {
        self.is_cancelled = true;
        self.token.cancel();
        self.workers.iter_mut().for_each(Worker::note_cancelled);
        self.end_waits(context, None);
        self.look(context);
        let (client, life) = self.name;
        for worker in 0..self.workers.len() {
            if self.workers[worker].is_pausing() {
                context.queue.after(
                    0,
                    Event::Work {
                        client,
                        life,
                        worker,
                    },
                );
            }
        }
    }

    /// Cancels the call of one thread, as a token of its own does.
    pub(crate) fn cancel_call(&mut self, context: &mut Context) {
        let calls = self
            .workers
            .iter()
            .enumerate()
            .filter(|(_, worker)| worker.is_acquiring());
        let calls: Vec<usize> = calls.map(|(index, _)| index).collect();
        if calls.is_empty() {
            return;
        }
        context.tally.fault("call cancelled");
        let worker = context.random.pick(&calls);
        if let Some(waiter) = self.workers[worker].cancel() {
            self.end_waits(context, Some(waiter));
        }
        self.look(context);
        if self.workers[worker].is_pausing() {
            let (client, life) = self.name;
            context.queue.after(
                0,
                Event::Work {
                    client,
                    life,
                    worker,
                },
            );
        }
    }

    /// Kills the client: its kernel closes its connections, unless the machine has failed.
    pub(crate) fn die(&mut self, context: &mut Context) {
        self.is_alive = false;
        if self.workers.iter().any(Worker::is_holding) {
            context.tally.fault("client dies holding");
        }
        context.checker.died(self.name, context.queue.now());
        let is_closed = context.random.chance(800);
        for link in &self.links {
            if let Link::Connecting(connection) | Link::Connected(connection) = *link {
                let Context {
                    network,
                    queue,
                    random,
                    ..
                } = context;
                if is_closed {
                    network.close(queue, random, connection);
                } else {
                    network.swallow(connection);
                    network.connections[connection].is_abandoned = true;
                }
            }
        }
    }
}
