//! What the clients of a history do, on how many nodes, and what may happen to these.

use crate::mistake::Mistake;
use models::Chance;

/// A call of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    /// One round if a majority agrees, otherwise a change that changes nothing.
    Read,
    /// Creates the register, in one round. Nobody else makes a value of none.
    Create,
    /// Appends something that nothing else appends.
    Append,
    /// Appends if there is a value.
    AppendToAny,
    /// Appends twice in one ballot, as two threads of a client do at one time.
    AppendTwice,
    Delete,
    /// Deletes and appends in one ballot.
    Renew,
    /// Appends if the version is still the one that this client has met last.
    CompareAndSet,
    /// A change that changes nothing, and then the removal of keys without a value.
    Sweep,
}

impl Verb {
    /// May its result be what it saw, rather than a change?
    pub(crate) fn looks(self) -> bool {
        !matches!(
            self,
            Self::Create | Self::Append | Self::AppendTwice | Self::Renew
        )
    }
}

/// What is called, and of which register.
pub(crate) type Call = (Verb, u8);

/// A kind of histories.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) registers: u8,
    /// The calls of each client, one after another.
    pub(crate) clients: Vec<Vec<Call>>,
    /// After this many rounds of one call a client stops for ever.
    pub(crate) rounds_max: usize,
    /// How often a node loses all its keys, or some.
    pub(crate) losses: usize,
    /// Do nodes come back with an older state?
    pub(crate) comes_back_older: bool,
    /// After this many rounds of one call each repairer stops for ever.
    pub(crate) repairers: Vec<usize>,
    /// How many calls each of them begins.
    pub(crate) repairs_max: u8,
    pub(crate) mistake: Option<Mistake>,
}

impl Plan {
    /// Clients of one register on three nodes.
    pub(crate) fn new(clients: &[&[Verb]]) -> Self {
        let calls = |verbs: &&[Verb]| verbs.iter().map(|verb| (*verb, 0)).collect();
        let clients = clients.iter().map(calls).collect();
        Self {
            clients,
            ..Self::empty()
        }
    }

    fn empty() -> Self {
        Self {
            nodes: 3,
            registers: 1,
            clients: Vec::new(),
            rounds_max: 40,
            losses: 0,
            comes_back_older: false,
            repairers: Vec::new(),
            repairs_max: 8,
            mistake: None,
        }
    }

    /// After how many rounds of one call this actor stops for ever.
    pub(crate) fn rounds_of(&self, actor: usize) -> usize {
        let repairer = actor.checked_sub(self.clients.len());
        repairer
            .and_then(|it| self.repairers.get(it).copied())
            .unwrap_or(self.rounds_max)
    }

    pub(crate) fn with(self, mistake: Mistake) -> Self {
        Self {
            mistake: Some(mistake),
            ..self
        }
    }

    /// Clients that stop after this many rounds of one call.
    pub(crate) fn rounds(self, rounds_max: usize) -> Self {
        Self { rounds_max, ..self }
    }

    /// Any plan of walks.
    pub(crate) fn any(random: &mut Chance) -> Self {
        let nodes = if random.one_in(3) { 5 } else { 3 };
        let registers = 1 + random.below(2) as u8;
        let weights: &[Verb] = match random.below(3) {
            0 => &[Verb::Append, Verb::Read],
            1 => &[Verb::Append, Verb::Delete, Verb::Read, Verb::Sweep],
            _ => &[
                Verb::Append,
                Verb::AppendTwice,
                Verb::Read,
                Verb::Delete,
                Verb::Renew,
                Verb::CompareAndSet,
                Verb::Sweep,
            ],
        };
        let clients = 2 + random.below(3);
        let calls = |random: &mut Chance| {
            let length = 1 + random.below(5);
            (0..length)
                .map(|_| {
                    (
                        random.pick(weights),
                        random.below(usize::from(registers)) as u8,
                    )
                })
                .collect()
        };
        let clients = (0..clients).map(|_| calls(random)).collect();
        let losses = if random.one_in(4) {
            1 + random.below(nodes / 2)
        } else {
            0
        };
        Self {
            nodes,
            registers,
            clients,
            losses,
            ..Self::empty()
        }
    }

    /// Plans in which clients change the register more often than a value remembers.
    pub(crate) fn many_changes(random: &mut Chance) -> Self {
        let often = |verb, times| vec![(verb, 0); times];
        let mut clients = vec![
            often(Verb::Append, 3),
            often(Verb::Append, 10 + random.below(6)),
        ];
        if random.one_in(2) {
            clients.push(often(Verb::Read, 3));
        }
        if random.one_in(4) {
            clients.push(often(Verb::CompareAndSet, 4));
        }
        let nodes = if random.one_in(4) { 5 } else { 3 };
        Self {
            nodes,
            clients,
            ..Self::empty()
        }
    }

    /// Plans in which a register is created in one round, as the record of a transaction is.
    pub(crate) fn created(random: &mut Chance) -> Self {
        let others = [
            Verb::AppendToAny,
            Verb::AppendToAny,
            Verb::Delete,
            Verb::Read,
            Verb::Sweep,
        ];
        let calls = |random: &mut Chance| {
            (0..1 + random.below(4))
                .map(|_| (random.pick(&others), 0))
                .collect::<Vec<_>>()
        };
        let mut clients: Vec<_> = (0..2 + random.below(3)).map(|_| calls(random)).collect();
        clients[0].insert(0, (Verb::Create, 0));
        let nodes = if random.one_in(3) { 5 } else { 3 };
        let losses = if random.one_in(4) {
            1 + random.below(nodes / 2)
        } else {
            0
        };
        Self {
            nodes,
            clients,
            losses,
            ..Self::empty()
        }
    }

    /// Any plan of walks in which nodes are repaired.
    pub(crate) fn any_repaired(random: &mut Chance) -> Self {
        let mut plan = Self::any(random);
        plan.nodes = if random.one_in(4) { 5 } else { 3 };
        plan.losses = 1 + random.below(3);
        plan.comes_back_older = random.one_in(3);
        let rounds = |random: &mut Chance| {
            if random.one_in(2) {
                200
            } else {
                random.below(40)
            }
        };
        plan.repairers = (0..1 + random.below(3)).map(|_| rounds(random)).collect();
        plan
    }
}
