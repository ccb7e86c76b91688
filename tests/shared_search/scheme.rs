//! What a history may contain, and the wrong ways of the protocol.

use crate::kind::{KINDS, Kind};
use crate::random::Random;

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Want {
    Exclusive,
    Reader,
    /// One of this many permits.
    Permit(u8),
}

impl Want {
    pub(crate) fn is_share(self) -> bool {
        self != Self::Exclusive
    }

    /// Is the one never served before the other if the other came first?
    pub(crate) fn excludes(self, other: Self) -> bool {
        self != Self::Reader || other != Self::Reader
    }
}

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A try for a share does not ask who waits.
    TryIgnoresQueue,
    /// A node gives shares although it keeps a token.
    SharesBesideToken,
    /// A permit is held as soon as a majority gave one, whichever slot.
    VotesOfAllSlots,
    /// A release deletes the key and reserves it for nobody.
    ReleaseForgetsQueue,
    /// The release of the last share reserves the key for nobody.
    LastShareReservesNothing,
    /// The release of a permit beside others calls nobody.
    PermitReleasesSilently,
    /// Who was called before the last share ended counts as called when the lock is shared again.
    CallsOutliveShares,
    /// A turn that is granted calls nobody.
    TurnCallsNobody,
    /// Shares have no end.
    SharesStay,
    /// Waiters for shares are called although a waiter for the exclusive lock is before them.
    SharesPassWriters,
    /// A node that gave a waiter its turn forgets the number.
    NoFloor,
    /// A share that is restored takes a slot that another one has.
    RestoreTakesSlotInUse,
    /// A permit that cannot be moved to its slot keeps the wrong one, which nobody else gets.
    RefusedRestoreKeepsSlot,
    /// A round for a permit ends with the majority, and nobody reads which slot the others gave.
    PermitRoundEndsWithMajority,
    /// A holder whose turn was refused by a node stays in that node's queue.
    RestoreLeavesWaiter,
    /// A client holds a share as soon as a majority calls it, without a turn.
    CallIsGrant,
    /// The join and the look do not withdraw the failed attempt.
    AttemptStays,
    /// A turn does not name the slot to begin with, so nodes with other free slots never agree.
    NodesChooseSlot,
    /// Tokens and shares may end while their client still counts them.
    ValidityFromAnswers,
    /// Reservations of a node whose grants do not count lead to a turn.
    QuarantineReserves,
}

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
    /// How often waiters look and holders renew of their own accord.
    pub(crate) looks_max: u16,
    /// Is it a violation if the last one of several permits goes to who came later?
    pub(crate) orders_permits: bool,
    /// Is the first client another program, which knows `SET NX` and no queue?
    pub(crate) has_plain_client: bool,
    /// Do holders extend when faults have stopped? Then they restore once more what they lack. If
    /// not, they read no answers either.
    pub(crate) extends_at_end: bool,
    pub(crate) mistake: Option<Mistake>,
}

impl Scheme {
    /// No faults, and the protocol as it is.
    pub(crate) fn sound(wants: &[Want]) -> Self {
        Self {
            nodes: 3,
            clients: wants.len(),
            wants: wants.to_vec(),
            calls: 1,
            faults_max: 0,
            kinds: Vec::new(),
            looks_max: 0,
            orders_permits: false,
            has_plain_client: false,
            extends_at_end: true,
            mistake: None,
        }
    }

    /// One of many sizes, with some of the kinds of faults.
    pub(crate) fn any(random: &mut Random) -> Self {
        let mut kinds = KINDS.to_vec();
        // Some kinds only, mostly: a property that one kind suspends is checked with the others.
        let keeps = 1 + random.below(4);
        kinds.retain(|_| random.below(4) < keeps);
        let has_faults = !random.once_in(5);
        let clients = 2 + random.below(4);
        Self {
            nodes: if random.once_in(4) { 5 } else { 3 },
            clients,
            wants: any_wants(clients, random),
            calls: 1 + random.below(3) as u8,
            faults_max: if has_faults { 1 + random.below(20) as u8 } else { 0 },
            kinds: if has_faults { kinds } else { Vec::new() },
            looks_max: 1000,
            orders_permits: false,
            has_plain_client: random.once_in(8),
            extends_at_end: has_faults,
            mistake: None,
        }
    }

    pub(crate) fn with_faults(self, faults_max: u8, kinds: &[Kind]) -> Self {
        Self { faults_max, kinds: kinds.to_vec(), ..self }
    }

    pub(crate) fn with(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// How often waiters may look when faults have stopped. If they never look, and nothing is
    /// lost, pushes must be enough.
    pub(crate) fn looks_at_end(&self) -> u16 {
        if self.kinds.is_empty() && self.looks_max == 0 { 0 } else { u16::MAX }
    }

    /// May attempts fail again and again until time passes? Nodes may have different slots free,
    /// and each of them calls a waiter for one.
    pub(crate) fn may_spin(&self) -> bool {
        self.wants.iter().any(|want| matches!(want, Want::Permit(_)))
    }

    /// Do the nodes tell nobody anything?
    pub(crate) fn is_mute(&self) -> bool {
        false
    }

    /// Does time pass in it although there are no faults?
    pub(crate) fn has_time(&self) -> bool {
        self.faults_max > 0
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
            true => Want::Exclusive,
            false => self.wants[(client + usize::from(call)) % self.wants.len()],
        }
    }
}

fn any_wants(clients: usize, random: &mut Random) -> Vec<Want> {
    let permits = 1 + random.below(3) as u8;
    let all = [Want::Exclusive, Want::Reader, Want::Permit(permits)];
    // All of one kind now and then.
    let kinds = match random.below(4) {
        0 => vec![Want::Permit(permits)],
        1 => vec![Want::Exclusive, Want::Reader],
        2 => vec![Want::Exclusive, Want::Permit(permits)],
        _ => all.to_vec(),
    };
    (0..clients).map(|_| random.choose(&kinds)).collect()
}
