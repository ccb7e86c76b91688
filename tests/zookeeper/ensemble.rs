//! A leader, one of its followers, and a client that is connected to one of them, until a fault
//! ends the session although they still answer.
//!
//! What is modelled, as ZooKeeper 3.8 does it: the leader ends a session at a whole tick, its
//! timeout after it last heard of it. It pings the follower every half tick, and the follower
//! answers with the sessions that it has heard from since the last ping. Between the two, messages
//! keep their order. The follower answers a read itself, the leader a sync when all that it has
//! proposed is committed, and a write when a majority has logged it. Replies to a client come in
//! the order of its requests.
//!
//! Two faults: the follower loses the leader, in one direction or both; or both lose the majority,
//! which elects another leader, and that one gives the session its whole timeout from then on.
//!
//! Times are milliseconds.

mod client;
mod message;
mod server;

use super::random::Random;
use super::rules::Observation;
use client::Client;
use message::{Down, Event, Link, Up};
use redlatch_zookeeper::validity::Reach;
use server::{Leader, Replies};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The timeout of the session: two ticks, the least that servers grant by default.
pub(crate) const TIMEOUT: u64 = 2 * TICK;

const TICK: u64 = 2_000;

/// When a history ends. The session has ended long before.
const END: u64 = 20_000;

/// What a client saw, and when its session ended.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) observations: Vec<Observation>,
    /// From when on another client can hold the lock.
    pub(crate) gone_at: u64,
}

struct Ensemble {
    random: Random,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    all_events: Vec<Event>,
    leader: Leader,
    up: Link,
    down: Link,
    /// Has the follower heard from the session since its last answer to a ping?
    has_heard: bool,
    client: Client,
    /// Of each connection.
    replies: Vec<Replies>,
}

/// The history of this seed.
pub(crate) fn history(seed: u64) -> History {
    let mut random = Random::new(seed);
    let mut leader = Leader::new(&mut random);
    let fault_at = 2_000 + random.below(8_000);
    let mut up = Link::default();
    let mut down = Link::default();
    match random.below(5) {
        0 => (up.cut_at, down.cut_at) = (Some(fault_at), Some(fault_at)),
        1 => up.cut_at = Some(fault_at),
        2 => down.cut_at = Some(fault_at),
        _ => leader.lose_majority(fault_at, fault_at + random.below(500)),
    }
    let client = Client::new(&mut random);
    let mut ensemble = Ensemble {
        random,
        events: BinaryHeap::new(),
        all_events: Vec::new(),
        leader,
        up,
        down,
        has_heard: false,
        client,
        replies: Vec::new(),
    };
    let phase = ensemble.random.below(TICK / 2);
    ensemble.at(phase, Event::HalfTick);
    ensemble.at(TICK, Event::Reconnect);
    ensemble.run();
    History {
        observations: ensemble.client.observations,
        gone_at: ensemble.leader.gone_at(),
    }
}

impl Ensemble {
    fn at(&mut self, time: u64, event: Event) {
        self.all_events.push(event);
        let index = self.all_events.len() - 1;
        // Events of one time happen in the order in which they were planned.
        self.events.push(Reverse((time, index as u64, index)));
    }

    fn run(&mut self) {
        while let Some(Reverse((now, _, index))) = self.events.pop() {
            if now > END {
                return;
            }
            self.happen(now, self.all_events[index]);
        }
    }

    fn happen(&mut self, now: u64, event: Event) {
        match event {
            Event::HalfTick => {
                self.tell_follower(now, Down::Ping);
                self.at(now + TICK / 2, Event::HalfTick);
            }
            Event::AtFollower(down) => self.at_follower(now, down),
            Event::AtLeader(up) => self.at_leader(now, up),
            Event::Reconnect => self.reconnect(now),
            Event::Ask { connection } => self.ask(now, connection),
            Event::Greeted { connection } => {
                if self.client.is_at_leader(connection) {
                    if self.leader.touch(now) {
                        self.reply(now, connection, None);
                    }
                } else {
                    self.tell_leader(now, Up::Validate { connection });
                }
            }
            Event::Asked { connection, reach } => self.asked(now, connection, reach),
            Event::Settled {
                connection,
                request,
            } => {
                if self.client.is_at_leader(connection) {
                    self.carried(now, connection, request);
                } else {
                    self.tell_follower(
                        now,
                        Down::Carried {
                            connection,
                            request,
                        },
                    );
                }
            }
            Event::Replied {
                connection,
                request,
            } => {
                if let Some(next) = self.client.replied(now, connection, request) {
                    self.at(next, Event::Ask { connection });
                }
            }
        }
    }

    fn at_follower(&mut self, now: u64, down: Down) {
        match down {
            Down::Ping => {
                let has_heard = std::mem::take(&mut self.has_heard);
                self.tell_leader(now, Up::Pong { has_heard });
            }
            Down::Validated { connection } => self.reply(now, connection, None),
            Down::Carried {
                connection,
                request,
            } => self.carried(now, connection, request),
        }
    }

    fn at_leader(&mut self, now: u64, up: Up) {
        match up {
            Up::Pong { has_heard: true } => {
                self.leader.touch(now);
            }
            Up::Pong { has_heard: false } => {}
            Up::Validate { connection } => {
                if self.leader.touch(now) {
                    self.tell_follower(now, Down::Validated { connection });
                }
            }
            Up::Forward {
                connection,
                request,
                reach,
            } => {
                self.propose(now, connection, request, reach);
            }
        }
    }

    fn propose(&mut self, now: u64, connection: usize, request: usize, reach: Reach) {
        if let Some(time) = self.leader.settles(now, reach, &mut self.random) {
            self.at(
                time,
                Event::Settled {
                    connection,
                    request,
                },
            );
        }
    }

    fn asked(&mut self, now: u64, connection: usize, reach: Reach) {
        let request = self.replies[connection].asked();
        let is_at_leader = self.client.is_at_leader(connection);
        if is_at_leader {
            self.leader.touch(now);
        } else {
            self.has_heard = true;
        }
        match reach {
            Reach::Leader | Reach::Majority if is_at_leader => {
                self.propose(now, connection, request, reach);
            }
            Reach::Leader | Reach::Majority => {
                self.tell_leader(
                    now,
                    Up::Forward {
                        connection,
                        request,
                        reach,
                    },
                );
            }
            _ => self.carried(now, connection, request),
        }
    }

    /// A request was carried out: it and those behind it that were, too, are answered.
    fn carried(&mut self, now: u64, connection: usize, request: usize) {
        for request in self.replies[connection].carried(request) {
            self.reply(now, connection, Some(request));
        }
    }

    fn reply(&mut self, now: u64, connection: usize, request: Option<usize>) {
        let time = self
            .client
            .link_from(connection)
            .arrival(now, &mut self.random);
        if let Some(time) = time {
            self.at(
                time,
                Event::Replied {
                    connection,
                    request,
                },
            );
        }
    }

    fn reconnect(&mut self, now: u64) {
        let connection = self.client.connect(now, &mut self.random);
        self.replies.push(Replies::default());
        let time = self
            .client
            .link_to(connection)
            .arrival(now, &mut self.random);
        self.at(
            time.expect("the client is never cut off"),
            Event::Greeted { connection },
        );
        if let Some(next) = self.client.gives_up_at(now, &mut self.random) {
            self.at(next, Event::Reconnect);
        }
    }

    fn ask(&mut self, now: u64, connection: usize) {
        let Some((reach, next)) = self.client.ask(now, connection, &mut self.random) else {
            return;
        };
        let time = self
            .client
            .link_to(connection)
            .arrival(now, &mut self.random);
        self.at(
            time.expect("the client is never cut off"),
            Event::Asked { connection, reach },
        );
        self.at(next, Event::Ask { connection });
    }

    fn tell_follower(&mut self, now: u64, down: Down) {
        if let Some(time) = self.down.arrival(now, &mut self.random) {
            self.at(time, Event::AtFollower(down));
        }
    }

    fn tell_leader(&mut self, now: u64, up: Up) {
        if let Some(time) = self.up.arrival(now, &mut self.random) {
            self.at(time, Event::AtLeader(up));
        }
    }
}
