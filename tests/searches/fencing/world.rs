//! The states of nodes and clients, and the steps between states.

use super::node::{Command, Data, run};
use models::Change;
use models::explore::{Model, hash};

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

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A node's key of the lock expires.
    Expire(usize),
    /// A node loses all its data.
    LoseData(usize),
    /// A claim of an ended attempt arrives, the one with this number.
    ArriveLate(usize, usize),
    /// A client's message arrives at a node, and the node's reply at the client.
    Deliver(usize, usize),
    /// A client begins an attempt, ends it without a lock, or decides by the replies that it has.
    Begin(usize),
    Leave(usize),
    Decide(usize),
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    TokenTwice(u8),
    /// Of an attempt that began when a larger one had been given.
    TokenTooSmall(u8),
}

/// What follows from the replies that a client has.
enum Decision {
    Grant(u8),
    WriteBack(u8),
}

impl Model for Scheme {
    type World = World;
    type Step = Step;
    type Violation = Violation;

    fn first(&mut self) -> World {
        World::default()
    }

    fn steps(&mut self, world: &World) -> Vec<Step> {
        let mut steps = Vec::new();
        for (
            node,
            Node {
                data,
                answers,
                late,
            },
        ) in world.nodes.iter().enumerate()
        {
            steps.extend((data.holder != 0).then_some(Step::Expire(node)));
            steps.extend((data.counter != 0 && self.loses_data).then_some(Step::LoseData(node)));
            steps.extend((0..late.len()).map(|index| Step::ArriveLate(node, index)));
            for (client, answer) in answers.iter().enumerate() {
                let is_sent = matches!(answer, Answer::Claimed | Answer::Confirming);
                steps.extend(is_sent.then_some(Step::Deliver(client, node)));
            }
        }
        for client in 0..CLIENTS {
            if world.attempts[client].number != 0 {
                steps.push(Step::Leave(client));
                let is_decided = world.decision(client, *self).is_some();
                steps.extend(is_decided.then_some(Step::Decide(client)));
            } else if world.begun < self.attempts {
                steps.push(Step::Begin(client));
            }
        }
        steps
    }

    fn take(&mut self, world: &mut World, step: &Step) -> Result<(), Violation> {
        match *step {
            Step::Expire(node) => world.nodes[node].data.holder = 0,
            Step::LoseData(node) => world.nodes[node].data = Data::default(),
            Step::ArriveLate(node, index) => {
                let Node { data, late, .. } = &mut world.nodes[node];
                let (number, seed) = late.remove(index);
                run(data, Command::Claim { number, seed }, self.change);
            }
            Step::Deliver(client, node) => world.deliver(client, node, *self),
            Step::Begin(client) => world.begin(client, *self),
            Step::Leave(client) => world.leave(client, *self),
            Step::Decide(client) => match world.decision(client, *self) {
                Some(Decision::Grant(token)) => world.grant(client, token, *self)?,
                Some(Decision::WriteBack(token)) => world.write_back(client, token, *self),
                None => {}
            },
        }
        // The order of nodes and of tokens makes no difference, so states are sorted.
        world.nodes.sort_unstable();
        world.tokens.sort_unstable();
        Ok(())
    }

    fn key(&self, world: &World) -> u64 {
        hash(world)
    }
}

impl World {
    fn begin(&mut self, client: usize, scheme: Scheme) {
        self.begun += 1;
        let is_behind = scheme.has_no_seed || scheme.clocks_disagree && client == 1;
        let seed = if is_behind { 1 } else { self.begun * STEP };
        let floor = self.tokens.last().copied().unwrap_or(0);
        self.attempts[client] = Attempt {
            number: self.begun,
            seed,
            token: 0,
            floor,
        };
        self.nodes
            .iter_mut()
            .for_each(|node| node.answers[client] = Answer::Claimed);
    }

    /// A message arrives at a node, and its reply at the client.
    fn deliver(&mut self, client: usize, node: usize, scheme: Scheme) {
        let Attempt {
            number,
            seed,
            token,
            ..
        } = self.attempts[client];
        let node = &mut self.nodes[node];
        let is_claim = node.answers[client] == Answer::Claimed;
        let command = match is_claim {
            true => Command::Claim { number, seed },
            false => Command::Confirm { number, token },
        };
        node.answers[client] = match run(&mut node.data, command, scheme.change) {
            None => Answer::None,
            Some(counter) if is_claim => Answer::Granted(counter),
            Some(_) => Answer::Confirmed,
        };
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

    fn decision(&self, client: usize, scheme: Scheme) -> Option<Decision> {
        let token = self.attempts[client].token;
        let answers = self.nodes.iter().map(|node| node.answers[client]);
        let count = |wanted: Answer| answers.clone().filter(|answer| *answer == wanted).count();
        if token != 0 {
            return (count(Answer::Confirmed) >= QUORUM).then_some(Decision::Grant(token));
        }
        let counters = answers.clone().filter_map(|answer| match answer {
            Answer::Granted(counter) => Some(counter),
            _ => None,
        });
        if counters.clone().count() < QUORUM {
            return None;
        }
        let largest = counters.max()?;
        let is_agreed = count(Answer::Granted(largest)) >= QUORUM || scheme.never_confirms;
        Some(if is_agreed {
            Decision::Grant(largest)
        } else {
            Decision::WriteBack(largest)
        })
    }

    fn write_back(&mut self, client: usize, token: u8, scheme: Scheme) {
        let Attempt { number, seed, .. } = self.attempts[client];
        self.attempts[client].token = token;
        for node in &mut self.nodes {
            let claim = std::mem::replace(&mut node.answers[client], Answer::Confirming);
            if claim == Answer::Claimed {
                // A claim arrives before its confirmation, because they are on one connection.
                run(
                    &mut node.data,
                    Command::Claim { number, seed },
                    scheme.change,
                );
            }
        }
    }

    fn grant(&mut self, client: usize, token: u8, scheme: Scheme) -> Result<(), Violation> {
        if self.tokens.contains(&token) {
            return Err(Violation::TokenTwice(token));
        }
        if token <= self.attempts[client].floor {
            return Err(Violation::TokenTooSmall(token));
        }
        self.tokens.push(token);
        self.leave(client, scheme);
        Ok(())
    }
}
