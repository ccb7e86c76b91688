//! The client: one connection after another, and requests of all kinds at random times.

use super::{Link, Observation, Random, Reach, TIMEOUT};

/// How many connections it has at most.
const CONNECTIONS_MAX: usize = 6;

/// The client, with all that it has seen.
pub(super) struct Client {
    pub(super) observations: Vec<Observation>,
    connections: Vec<Connection>,
    /// From when on it sends other requests than before.
    changes_at: u64,
    /// How likely reads, syncs and writes are, before and after that.
    weights: [[u64; 3]; 2],
    /// The longest pause between two requests.
    pause_max: u64,
    /// Does it open other connections?
    is_restless: bool,
}

struct Connection {
    is_at_leader: bool,
    sent_at: u64,
    to_server: Link,
    from_server: Link,
}

impl Client {
    pub(super) fn new(random: &mut Random) -> Self {
        let mut weights = || match random.below(4) {
            0 => [1, 0, 0],
            1 => [1, 3, 0],
            2 => [0, 0, 1],
            _ => [1, 1, 1],
        };
        let weights = [weights(), weights()];
        Self {
            observations: Vec::new(),
            connections: Vec::new(),
            changes_at: 2_000 + random.below(8_000),
            weights,
            pause_max: [100, TIMEOUT / 7, TIMEOUT / 4, TIMEOUT / 2][random.below(4) as usize],
            is_restless: random.one_in(2),
        }
    }

    pub(super) fn is_at_leader(&self, connection: usize) -> bool {
        self.connections[connection].is_at_leader
    }

    pub(super) fn link_to(&mut self, connection: usize) -> &mut Link {
        &mut self.connections[connection].to_server
    }

    pub(super) fn link_from(&mut self, connection: usize) -> &mut Link {
        &mut self.connections[connection].from_server
    }

    /// Gives its connection up, and opens the next one.
    pub(super) fn connect(&mut self, now: u64, random: &mut Random) -> usize {
        self.connections.push(Connection {
            is_at_leader: random.one_in(3),
            sent_at: now,
            to_server: Link::default(),
            from_server: Link::default(),
        });
        self.connections.len() - 1
    }

    /// When it will open another one.
    pub(super) fn gives_up_at(&mut self, now: u64, random: &mut Random) -> Option<u64> {
        let has_more = self.connections.len() < CONNECTIONS_MAX && self.is_restless;
        has_more.then(|| now + 100 + random.below(2 * TIMEOUT))
    }

    /// The next request, and when it will send the one after it. Nothing on a connection that it
    /// has given up.
    pub(super) fn ask(
        &mut self,
        now: u64,
        connection: usize,
        random: &mut Random,
    ) -> Option<(Reach, u64)> {
        if connection + 1 != self.connections.len() {
            return None;
        }
        let weights = self.weights[usize::from(now >= self.changes_at)];
        let mut choice = random.below(weights.iter().sum());
        let mut reaches = [Reach::Server, Reach::Leader, Reach::Majority]
            .into_iter()
            .zip(weights);
        let reach = reaches.find_map(|(reach, weight)| {
            let is_chosen = choice < weight;
            choice = choice.saturating_sub(weight);
            is_chosen.then_some(reach)
        });
        let reach = reach.expect("the choice is below the sum");
        self.observations.push(Observation::Sent { at: now, reach });
        Some((reach, now + 1 + random.below(self.pause_max)))
    }

    /// A reply has come. Returns when it sends the next request, if it has waited for this reply.
    pub(super) fn replied(
        &mut self,
        now: u64,
        connection: usize,
        request: Option<usize>,
    ) -> Option<u64> {
        if connection + 1 != self.connections.len() {
            return None;
        }
        let latest = &self.connections[connection];
        match request {
            Some(_) => {
                self.observations.push(Observation::Answered { at: now });
                None
            }
            None => {
                let sent_at = latest.sent_at;
                self.observations
                    .push(Observation::Connected { sent_at, at: now });
                Some(now)
            }
        }
    }
}
