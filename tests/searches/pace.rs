//! How a living client does what it has to.

/// Living waiters that must not keep the others waiting, and those who do as they should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pace {
    #[default]
    Prompt,
    /// It renews its entry and never claims.
    Idle,
    /// It reaches a minority of the nodes.
    Minority,
    /// Each of its tries and claims takes longer than a round may.
    Late,
}

impl Pace {
    /// For how many reservations it may keep the lock free when it stands in front: two for each
    /// miss that it may have, if it comes back each time before anybody else claims.
    pub(crate) fn cost(self) -> u32 {
        if self == Self::Prompt { 0 } else { 9 }
    }
}
