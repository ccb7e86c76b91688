//! What a history may contain, and the wrong ways of the protocol.

use crate::kind::{KINDS, Kind};
use crate::random::Random;

/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A reservation stays where it was first put, although an earlier waiter arrives.
    ReservationsStay,
    /// A client holds the lock as soon as a majority has reserved it, without a claim.
    ReservationIsGrant,
    /// The validity is counted from the answers rather than from before the first command, so a
    /// node's token may expire while its client still counts it.
    ValidityFromAnswers,
    /// A release deletes the key and reserves it for nobody.
    ReleaseForgetsQueue,
    /// The number of a waiter is the first that was answered rather than the largest.
    NumberOfOneNode,
    /// A look does not enter the waiter again where its place was lost.
    LookKeepsOut,
    /// A claim of a free key does not ask who is first.
    ClaimIgnoresHead,
    /// The look after a failed claim does not withdraw the claim.
    ClaimStays,
    /// The join does not withdraw the failed try.
    TryStays,
    /// A granted claim removes the waiter from the queue before the lock is released, so a client
    /// that joins before the claim is withdrawn is given no larger number.
    ClaimLeavesQueue,
    /// A renewal prolongs the reservation of its waiter.
    RenewalProlongs,
    /// Who does not claim in time stays in the queue, and is reserved the lock again.
    LateStays,
    /// Nobody is told when the time of a reservation will be over.
    NextIsNotTold,
    /// The entry of a waiter whose connection is gone stays.
    UnheardStays,
    /// A waiter that comes back to a node that has passed it over gets a new number there.
    LateGetsNewNumber,
    /// A reservation is passed on although its time is not over.
    PassesInTime,
    /// Whoever passes a reservation on stays out as if it had been late itself.
    CallerIsLate,
    /// A waiter that is out of the queue whenever it looks has missed one reservation.
    MissesInRowCountOnce,
    /// Reservations of a node whose grants do not count lead to a claim.
    QuarantineReserves,
}

/// The size of a history, and what may happen in it.
#[derive(Clone, Debug)]
pub(crate) struct Scheme {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    /// How often each client wants the lock.
    pub(crate) calls: u8,
    /// How many faults there are in a history, without their consequences.
    pub(crate) faults_max: u8,
    pub(crate) kinds: Vec<Kind>,
    /// How often waiters look of their own accord.
    pub(crate) looks_max: u16,
    /// Is the first client another program, which knows `SET NX` and no queue?
    pub(crate) has_plain_client: bool,
    /// Do holders leave the lock to nobody for a while, instead of releasing it?
    pub(crate) lingers: bool,
    /// Do the nodes tell nobody anything?
    pub(crate) is_mute: bool,
    pub(crate) mistake: Option<Mistake>,
}

impl Scheme {
    /// No faults, and the protocol as it is.
    pub(crate) fn sound(clients: usize) -> Self {
        Self {
            nodes: 3,
            clients,
            calls: 1,
            faults_max: 0,
            kinds: Vec::new(),
            looks_max: 0,
            has_plain_client: false,
            lingers: false,
            is_mute: false,
            mistake: None,
        }
    }

    /// One of many sizes, with some of the kinds of faults.
    pub(crate) fn any(random: &mut Random) -> Self {
        if random.once_in(8) {
            // Many waiters, of whom some die or take nothing, and nothing else.
            let clients = 5 + random.below(4);
            let faults_max = 2 + random.below(clients - 2) as u8;
            let kinds = [Kind::Death, Kind::Slow, Kind::Token];
            let scheme = Self { looks_max: 1000, ..Self::sound(clients) };
            return scheme.with_faults(faults_max, &kinds[..1 + random.below(3)]);
        }
        let mut kinds = KINDS.to_vec();
        // Some kinds only, mostly: a property that one kind suspends is checked with the others.
        let keeps = 1 + random.below(4);
        kinds.retain(|_| random.below(4) < keeps);
        let has_faults = !random.once_in(5);
        Self {
            nodes: if random.once_in(4) { 5 } else { 3 },
            clients: 2 + random.below(4),
            calls: 1 + random.below(3) as u8,
            faults_max: if has_faults { 1 + random.below(20) as u8 } else { 0 },
            kinds: if has_faults { kinds } else { Vec::new() },
            looks_max: 1000,
            has_plain_client: random.once_in(8),
            lingers: random.once_in(8),
            is_mute: random.once_in(8),
            mistake: None,
        }
    }

    pub(crate) fn with_faults(self, faults_max: u8, kinds: &[Kind]) -> Self {
        Self { faults_max, kinds: kinds.to_vec(), ..self }
    }

    pub(crate) fn with(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
    }

    /// How often waiters may look when faults have stopped.
    pub(crate) fn looks_at_end(&self) -> u16 {
        u16::MAX
    }

    /// May attempts fail again and again until time passes?
    pub(crate) fn may_spin(&self) -> bool {
        false
    }

    pub(crate) fn is_mute(&self) -> bool {
        self.is_mute
    }

    /// Does time pass in it although there are no faults?
    pub(crate) fn has_time(&self) -> bool {
        self.faults_max > 0 || self.lingers
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
}
