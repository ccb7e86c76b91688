//! What a history may contain.

use crate::kind::{KINDS, Kind};
use crate::mistake::Mistake;
use crate::want::Want::{self, Both, Exclusive, Permit, Reader, Second};
use models::Chance;

/// The size of a history, and what may happen in it.
#[derive(Clone, Debug)]
pub(crate) struct Scheme {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    /// What each client wants, again and again in this order; each client begins at another place.
    pub(crate) wants: Vec<Want>,
    /// How often each client wants it.
    pub(crate) calls: u8,
    /// How many faults there are in a history, without their consequences.
    pub(crate) faults_max: u8,
    pub(crate) kinds: Vec<Kind>,
    /// How often waiters look and holders extend of their own accord.
    pub(crate) looks_max: u16,
    /// Do holders extend?
    pub(crate) extends: bool,
    /// Do holders extend when faults have stopped? Then they restore once more what they lack. If
    /// not, they read no answers either.
    pub(crate) extends_at_end: bool,
    /// Is it a violation if the last one of several permits goes to who came later?
    pub(crate) orders_permits: bool,
    /// Is the first client another program, which knows `SET NX` and no queue?
    pub(crate) has_plain_client: bool,
    /// Do holders leave the lock to nobody for a while, instead of releasing it?
    pub(crate) keeps: bool,
    /// Do the nodes tell nobody anything?
    pub(crate) is_mute: bool,
    pub(crate) mistake: Option<Mistake>,
}

impl Scheme {
    /// No faults, and the protocol as it is, for clients that want this.
    pub(crate) fn sound(wants: &[Want]) -> Self {
        Self {
            nodes: 3,
            clients: wants.len(),
            wants: wants.to_vec(),
            calls: 1,
            faults_max: 0,
            kinds: Vec::new(),
            looks_max: 0,
            extends: false,
            extends_at_end: true,
            orders_permits: false,
            has_plain_client: false,
            keeps: false,
            is_mute: false,
            mistake: None,
        }
    }

    /// One of many sizes, with some of the kinds of faults, in which all want the exclusive lock.
    pub(crate) fn any_queue(random: &mut Chance) -> Self {
        if random.one_in(8) {
            // Many waiters, of whom some die or take nothing, and nothing else.
            let clients = 5 + random.below(4);
            let faults_max = 2 + random.below(clients - 2) as u8;
            let kinds = [Kind::Death, Kind::Slow, Kind::Token];
            let scheme = Self {
                looks_max: 1000,
                ..Self::sound(&vec![Exclusive; clients])
            };
            return scheme.with_faults(faults_max, &kinds[..1 + random.below(3)]);
        }
        let scheme = Self::any(|clients, _| vec![Exclusive; clients], random);
        Self {
            keeps: random.one_in(8),
            is_mute: random.one_in(8),
            ..scheme
        }
    }

    /// One of many sizes, in which clients want different things.
    pub(crate) fn any_shares(random: &mut Chance) -> Self {
        let scheme = Self::any(any_wants, random);
        // Another program's release tells nobody, which the bound on time does not allow for.
        let keeps = random.one_in(8) && !scheme.has_plain_client;
        Self {
            extends: true,
            keeps,
            ..scheme
        }
    }

    /// One of many sizes, in which clients want one of two locks or both.
    pub(crate) fn any_sets(random: &mut Chance) -> Self {
        let wants = |clients, random: &mut Chance| {
            (0..clients)
                .map(|_| random.pick(&[Exclusive, Second, Both, Both]))
                .collect()
        };
        Self::any(wants, random)
    }

    fn any(wants: fn(usize, &mut Chance) -> Vec<Want>, random: &mut Chance) -> Self {
        let mut kinds = KINDS.to_vec();
        // Some kinds only, mostly: a property that one kind suspends is checked with the others.
        let keeps = 1 + random.below(4);
        kinds.retain(|_| random.below(4) < keeps);
        let has_faults = !random.one_in(5);
        let nodes = if random.one_in(4) { 5 } else { 3 };
        let clients = 2 + random.below(4);
        Self {
            nodes,
            calls: 1 + random.below(3) as u8,
            faults_max: if has_faults {
                1 + random.below(20) as u8
            } else {
                0
            },
            kinds: if has_faults { kinds } else { Vec::new() },
            looks_max: 1000,
            extends_at_end: has_faults,
            has_plain_client: random.one_in(8),
            ..Self::sound(&wants(clients, random))
        }
    }

    pub(crate) fn with_faults(self, faults_max: u8, kinds: &[Kind]) -> Self {
        Self {
            faults_max,
            kinds: kinds.to_vec(),
            ..self
        }
    }

    pub(crate) fn with(self, mistake: Mistake) -> Self {
        Self {
            mistake: Some(mistake),
            ..self
        }
    }

    /// How often waiters may look when faults have stopped. If they never look, and nothing is
    /// lost, pushes must be enough.
    pub(crate) fn looks_at_end(&self) -> u16 {
        if self.kinds.is_empty() && self.looks_max == 0 {
            0
        } else {
            u16::MAX
        }
    }

    /// May attempts fail again and again until time passes? Nodes may have different slots free,
    /// and each of them calls a waiter for one.
    pub(crate) fn may_spin(&self) -> bool {
        self.wants.iter().any(|want| matches!(want, Permit(_)))
    }

    pub(crate) fn has_shares(&self) -> bool {
        self.wants.iter().any(|want| want.is_share())
    }

    pub(crate) fn has_sets(&self) -> bool {
        self.wants.iter().any(|want| want.is_set())
    }

    /// Does time pass in it although there are no faults?
    pub(crate) fn has_time(&self) -> bool {
        self.faults_max > 0 || self.keeps
    }

    pub(crate) fn quorum(&self) -> usize {
        self.nodes / 2 + 1
    }

    pub(crate) fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    pub(crate) fn allows(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    pub(crate) fn is_plain(&self, client: usize) -> bool {
        self.has_plain_client && client == 0
    }

    /// What this client wants in this call, counted from zero.
    pub(crate) fn want(&self, client: usize, call: u8) -> Want {
        match self.is_plain(client) {
            true => Exclusive,
            false => self.wants[(client + usize::from(call)) % self.wants.len()],
        }
    }
}

fn any_wants(clients: usize, random: &mut Chance) -> Vec<Want> {
    let permits = 1 + random.below(3) as u8;
    let all = [Exclusive, Reader, Permit(permits)];
    // All of one kind now and then.
    let kinds = match random.below(4) {
        0 => vec![Permit(permits)],
        1 => vec![Exclusive, Reader],
        2 => vec![Exclusive, Permit(permits)],
        _ => all.to_vec(),
    };
    (0..clients).map(|_| random.pick(&kinds)).collect()
}
