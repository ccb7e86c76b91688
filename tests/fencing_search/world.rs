//! Nodes, clients, and what can happen to them next.

pub(crate) const NODES: usize = 3;
const QUORUM: usize = 2;
pub(crate) const CLIENTS: usize = 2;

/// How many attempts there are in a history.
const ATTEMPTS: u8 = 4;

/// By how much a seed exceeds the one before: more than there are grants.
const STEP: u8 = 16;

/// How tokens are made, and the ways in which they could be made wrongly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheme {
    pub(crate) confirms_blindly: bool,
    pub(crate) never_confirms: bool,
    pub(crate) has_no_seed: bool,
    pub(crate) seeds_only_the_missing: bool,
}

impl Scheme {
    pub(crate) const SOUND: Self = Self {
        confirms_blindly: false,
        never_confirms: false,
        has_no_seed: false,
        seeds_only_the_missing: false,
    };
}

/// A node: whose attempt has the lock's key, and the counter. Zero is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    holder: u8,
    counter: u8,
}

/// What a client knows of its attempt on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Answer {
    /// Nothing is asked of the node.
    #[default]
    None,
    /// The claim is on its way.
    Claimed,
    /// It was granted, with this counter.
    Granted(u8),
    /// The write-back is on its way.
    Confirming,
    /// The counter is known to be raised.
    Confirmed,
}

/// A client's attempt. Its number is zero if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Attempt {
    number: u8,
    seed: u8,
    /// The token that the write-back is about. Zero before that.
    token: u8,
    /// The largest token that had been given when the attempt began.
    floor: u8,
    answers: [Answer; NODES],
}

/// A moment in a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    nodes: [Node; NODES],
    attempts: [Attempt; CLIENTS],
    begun: u8,
    /// Tokens that were given, in their order.
    tokens: Vec<u8>,
    /// Claims of attempts that nobody waits for, and that may arrive yet: attempt, seed and node.
    late: Vec<(u8, u8, u8)>,
}

/// What went wrong.
pub(crate) type Violation = String;

impl World {
    /// All worlds that can come next.
    pub(crate) fn next(&self, scheme: Scheme, found: &mut Vec<Self>) -> Result<(), Violation> {
        for node in 0..NODES {
            self.expire(node, found);
            for client in 0..CLIENTS {
                self.deliver(client, node, scheme, found);
            }
        }
        for client in 0..CLIENTS {
            self.begin(client, scheme, found);
            self.give_up(client, found);
            self.decide(client, scheme, found)?;
        }
        for index in 0..self.late.len() {
            let mut world = self.clone();
            let (number, seed, node) = world.late.swap_remove(index);
            world.nodes[usize::from(node)].claim(number, seed, scheme);
            found.push(world.sorted());
        }
        Ok(())
    }

    /// Keys expire, and nodes lose all they have.
    fn expire(&self, node: usize, found: &mut Vec<Self>) {
        let before = self.nodes[node];
        for after in [Node { holder: 0, ..before }, Node::default()] {
            if after != before {
                let mut world = self.clone();
                world.nodes[node] = after;
                found.push(world);
            }
        }
    }

    fn begin(&self, client: usize, scheme: Scheme, found: &mut Vec<Self>) {
        if self.attempts[client].number != 0 || self.begun == ATTEMPTS {
            return;
        }
        let mut world = self.clone();
        world.begun += 1;
        world.attempts[client] = Attempt {
            number: world.begun,
            seed: if scheme.has_no_seed { 1 } else { world.begun * STEP },
            token: 0,
            floor: self.tokens.iter().copied().max().unwrap_or(0),
            answers: [Answer::Claimed; NODES],
        };
        found.push(world);
    }

    /// A message arrives at a node, and its answer at the client, or not.
    fn deliver(&self, client: usize, node: usize, scheme: Scheme, found: &mut Vec<Self>) {
        let Attempt { number, seed, token, answers, .. } = self.attempts[client];
        let mut world = self.clone();
        let (place, attempt) = (&mut world.nodes[node], &mut world.attempts[client]);
        let answer = match answers[node] {
            Answer::Claimed => place.claim(number, seed, scheme).map(Answer::Granted),
            Answer::Confirming => place.confirm(number, token, scheme).then_some(Answer::Confirmed),
            _ => return,
        };
        attempt.answers[node] = Answer::None;
        if let Some(answer) = answer {
            let mut heard = world.clone();
            heard.attempts[client].answers[node] = answer;
            found.push(heard);
        }
        found.push(world);
    }

    /// The client gives up. Its claims may arrive all the same.
    fn give_up(&self, client: usize, found: &mut Vec<Self>) {
        if self.attempts[client].number != 0 {
            let mut world = self.clone();
            world.leave(client);
            found.push(world);
        }
    }

    fn leave(&mut self, client: usize) {
        let attempt = std::mem::take(&mut self.attempts[client]);
        for (node, answer) in attempt.answers.into_iter().enumerate() {
            if answer == Answer::Claimed {
                self.late.push((attempt.number, attempt.seed, node as u8));
            }
        }
        self.late.sort_unstable();
    }

    fn sorted(mut self) -> Self {
        self.late.sort_unstable();
        self
    }

    /// The client has heard from a majority.
    fn decide(
        &self,
        client: usize,
        scheme: Scheme,
        found: &mut Vec<Self>,
    ) -> Result<(), Violation> {
        let attempt = &self.attempts[client];
        let counters = attempt.answers.iter().filter_map(|answer| match answer {
            Answer::Granted(counter) => Some(*counter),
            _ => None,
        });
        let counters: Vec<u8> = counters.collect();
        let confirmed =
            attempt.answers.iter().filter(|answer| **answer == Answer::Confirmed).count();
        if attempt.token != 0 {
            return if confirmed >= QUORUM {
                self.grant(client, attempt.token, found)
            } else {
                Ok(())
            };
        }
        let largest = counters.iter().copied().max().unwrap_or(0);
        if counters.len() < QUORUM {
            return Ok(());
        }
        let agreeing = counters.iter().filter(|counter| **counter == largest).count();
        if agreeing >= QUORUM || scheme.never_confirms {
            return self.grant(client, largest, found);
        }
        let mut world = self.clone();
        let attempt = &mut world.attempts[client];
        attempt.token = largest;
        let claims = attempt.answers;
        attempt.answers = [Answer::Confirming; NODES];
        for (node, claim) in claims.into_iter().enumerate() {
            // What was claimed before arrives before what confirms it: they go one way.
            if claim == Answer::Claimed {
                let (number, seed) = (attempt.number, attempt.seed);
                attempt.answers[node] = Answer::None;
                world.late.push((number, seed, node as u8));
            }
        }
        found.push(world.sorted());
        Ok(())
    }

    fn grant(&self, client: usize, token: u8, found: &mut Vec<Self>) -> Result<(), Violation> {
        if self.tokens.contains(&token) {
            return Err(format!("token {token} twice: {self:?}"));
        }
        if token <= self.attempts[client].floor {
            return Err(format!("token {token} below one that was given before: {self:?}"));
        }
        let mut world = self.clone();
        world.tokens.push(token);
        world.leave(client);
        found.push(world);
        Ok(())
    }
}

impl Node {
    /// `claim.lua`
    fn claim(&mut self, number: u8, seed: u8, scheme: Scheme) -> Option<u8> {
        if self.holder != 0 {
            return None;
        }
        self.holder = number;
        self.counter = match self.counter {
            0 => seed,
            counter if scheme.seeds_only_the_missing || scheme.has_no_seed => counter + 1,
            counter => seed.max(counter + 1),
        };
        Some(self.counter)
    }

    /// `fence.lua`
    fn confirm(&mut self, number: u8, token: u8, scheme: Scheme) -> bool {
        if self.holder != number && !scheme.confirms_blindly {
            return false;
        }
        self.counter = self.counter.max(token);
        true
    }
}
