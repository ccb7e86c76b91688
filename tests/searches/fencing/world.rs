//! The states of nodes and clients, and the steps between states.

use super::node::{Command, Data, run};
use models::Change;

pub(crate) const NODES: usize = 3;
const QUORUM: usize = 2;
const CLIENTS: usize = 2;

/// The difference between consecutive seeds: more than the number of grants.
const STEP: u8 = 16;

/// How tokens are made, with options for wrong ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    /// A mistake of nodes.
    pub(crate) change: Option<Change>,
    /// There is no write-back.
    pub(crate) never_confirms: bool,
    /// Counters begin at one.
    pub(crate) has_no_seed: bool,
    /// How many attempts there are in a history.
    pub(crate) attempts: u8,
    /// Do nodes lose all their data?
    pub(crate) loses_data: bool,
    /// Is the second client's wall clock stopped, long before the first one's?
    pub(crate) clocks_disagree: bool,
    /// Can a claim arrive after its timeout?
    pub(crate) has_late_claims: bool,
}

impl Scheme {
    pub(crate) const SOUND: Self = Self {
        change: None,
        never_confirms: false,
        has_no_seed: false,
        attempts: 3,
        loses_data: true,
        clocks_disagree: false,
        has_late_claims: false,
    };
}

/// The state of an attempt on one node, as the client sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Answer {
    /// Nothing was sent to the node.
    #[default]
    None,
    /// The claim is in flight.
    Claimed,
    /// It was granted, with this counter.
    Granted(u8),
    /// The write-back is in flight.
    Confirming,
    /// The counter is known to be raised.
    Confirmed,
}

/// A node, and the claims in flight to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Node {
    data: Data,
    answers: [Answer; CLIENTS],
    /// Claims of ended attempts: their numbers and seeds.
    late: Vec<(u8, u8)>,
}

/// A client's attempt. Its number is zero if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Attempt {
    number: u8,
    seed: u8,
    /// The token of the write-back; zero before it.
    token: u8,
    /// The largest token that had been given when the attempt began.
    floor: u8,
}

/// One state of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    nodes: [Node; NODES],
    attempts: [Attempt; CLIENTS],
    begun: u8,
    /// The tokens that were given.
    tokens: Vec<u8>,
}

/// A description of the violation.
pub(crate) type Violation = String;

impl World {
    /// All states that can follow.
    pub(crate) fn next(&self, scheme: Scheme, found: &mut Vec<Self>) -> Result<(), Violation> {
        for node in 0..NODES {
            self.expire(node, scheme, found);
            self.arrive_late(node, scheme, found);
            for client in 0..CLIENTS {
                self.deliver(client, node, scheme, found);
            }
        }
        for client in 0..CLIENTS {
            self.begin(client, scheme, found);
            if self.attempts[client].number != 0 {
                found.push(self.changed(|world| world.leave(client, scheme)));
                self.decide(client, scheme, found)?;
            }
        }
        Ok(())
    }

    fn changed(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut world = self.clone();
        change(&mut world);
        // The order of nodes and of tokens makes no difference, so states are sorted.
        world.nodes.sort_unstable();
        world.tokens.sort_unstable();
        world
    }

    /// A key expires, or a node loses all its data.
    fn expire(&self, node: usize, scheme: Scheme, found: &mut Vec<Self>) {
        if self.nodes[node].data.holder != 0 {
            found.push(self.changed(|world| world.nodes[node].data.holder = 0));
        }
        if self.nodes[node].data.counter != 0 && scheme.loses_data {
            found.push(self.changed(|world| world.nodes[node].data = Data::default()));
        }
    }

    fn arrive_late(&self, node: usize, scheme: Scheme, found: &mut Vec<Self>) {
        for index in 0..self.nodes[node].late.len() {
            found.push(self.changed(|world| {
                let (number, seed) = world.nodes[node].late.remove(index);
                let claim = Command::Claim { number, seed };
                run(&mut world.nodes[node].data, claim, scheme.change);
            }));
        }
    }

    fn begin(&self, client: usize, scheme: Scheme, found: &mut Vec<Self>) {
        if self.attempts[client].number != 0 || self.begun == scheme.attempts {
            return;
        }
        found.push(self.changed(|world| {
            world.begun += 1;
            let is_behind = scheme.has_no_seed || scheme.clocks_disagree && client == 1;
            let seed = if is_behind { 1 } else { world.begun * STEP };
            let floor = world.tokens.last().copied().unwrap_or(0);
            world.attempts[client] = Attempt { number: world.begun, seed, token: 0, floor };
            world.nodes.iter_mut().for_each(|node| node.answers[client] = Answer::Claimed);
        }));
    }

    /// A message arrives at a node, and its reply at the client.
    fn deliver(&self, client: usize, node: usize, scheme: Scheme, found: &mut Vec<Self>) {
        let Attempt { number, seed, token, .. } = self.attempts[client];
        let answer = self.nodes[node].answers[client];
        if !matches!(answer, Answer::Claimed | Answer::Confirming) {
            return;
        }
        found.push(self.changed(|world| {
            let node = &mut world.nodes[node];
            let is_claim = answer == Answer::Claimed;
            let command = match is_claim {
                true => Command::Claim { number, seed },
                false => Command::Confirm { number, token },
            };
            let granted = run(&mut node.data, command, scheme.change);
            node.answers[client] = match granted {
                None => Answer::None,
                Some(counter) if is_claim => Answer::Granted(counter),
                Some(_) => Answer::Confirmed,
            };
        }));
    }

    /// A client's attempt ends. Its claims may still arrive.
    fn leave(&mut self, client: usize, scheme: Scheme) {
        let attempt = std::mem::take(&mut self.attempts[client]);
        for node in &mut self.nodes {
            let answer = std::mem::take(&mut node.answers[client]);
            if answer == Answer::Claimed && scheme.has_late_claims {
                node.late.push((attempt.number, attempt.seed));
                node.late.sort_unstable();
            }
        }
    }

    /// A client decides by the replies that it has.
    fn decide(
        &self,
        client: usize,
        scheme: Scheme,
        found: &mut Vec<Self>,
    ) -> Result<(), Violation> {
        let Attempt { number, seed, token, .. } = self.attempts[client];
        let answers = self.nodes.iter().map(|node| node.answers[client]);
        let count = |wanted: Answer| answers.clone().filter(|answer| *answer == wanted).count();
        if token != 0 {
            let is_confirmed = count(Answer::Confirmed) >= QUORUM;
            return if is_confirmed { self.grant(client, token, scheme, found) } else { Ok(()) };
        }
        let counters = answers.clone().filter_map(|answer| match answer {
            Answer::Granted(counter) => Some(counter),
            _ => None,
        });
        if counters.clone().count() < QUORUM {
            return Ok(());
        }
        let largest = counters.max().unwrap_or(0);
        if count(Answer::Granted(largest)) >= QUORUM || scheme.never_confirms {
            return self.grant(client, largest, scheme, found);
        }
        found.push(self.changed(|world| {
            world.attempts[client].token = largest;
            for node in &mut world.nodes {
                let claim = std::mem::replace(&mut node.answers[client], Answer::Confirming);
                if claim == Answer::Claimed {
                    // A claim arrives before its confirmation, because they are on one connection.
                    run(&mut node.data, Command::Claim { number, seed }, scheme.change);
                }
            }
        }));
        Ok(())
    }

    fn grant(
        &self,
        client: usize,
        token: u8,
        scheme: Scheme,
        found: &mut Vec<Self>,
    ) -> Result<(), Violation> {
        if self.tokens.contains(&token) {
            return Err(format!("token {token} twice: {self:?}"));
        }
        if token <= self.attempts[client].floor {
            return Err(format!("token {token} after a larger one: {self:?}"));
        }
        found.push(self.changed(|world| {
            world.tokens.push(token);
            world.leave(client, scheme);
        }));
        Ok(())
    }
}
