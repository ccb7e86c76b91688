//! What a history may contain, and the wrong ways of the protocol.

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
    /// Reservations of a node whose grants do not count lead to a claim.
    QuarantineReserves,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// A client leaves before it has the lock.
    GiveUp,
    /// A client dies; from some point on, what it sent does not arrive.
    Death,
    /// A lease expires, also that of a living waiter.
    Lease,
    /// A reservation expires.
    Reservation,
    /// A token expires whose lock has ended.
    Token,
    /// A round takes too long, or the validity of a lock ends before its release.
    Timeout,
    /// A push is lost, repeated, or comes for nothing.
    Push,
    /// A connection is cut: replies are lost, and commands arrive late, twice, or never.
    Cut,
    /// A node loses its queue and its reservation, but no token.
    QueueLoss,
    /// A node restarts without its data.
    Restart,
    /// One node does not answer.
    Down,
}

/// All kinds of faults.
pub(crate) const KINDS: [Kind; 11] = [
    Kind::GiveUp,
    Kind::Death,
    Kind::Lease,
    Kind::Reservation,
    Kind::Token,
    Kind::Timeout,
    Kind::Push,
    Kind::Cut,
    Kind::QueueLoss,
    Kind::Restart,
    Kind::Down,
];

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
            mistake: None,
        }
    }

    pub(crate) fn with_faults(self, faults_max: u8, kinds: &[Kind]) -> Self {
        Self { faults_max, kinds: kinds.to_vec(), ..self }
    }

    pub(crate) fn with(self, mistake: Mistake) -> Self {
        Self { mistake: Some(mistake), ..self }
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
