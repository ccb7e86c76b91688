//! What a client wants.

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Want {
    Exclusive,
    Reader,
    /// One of this many permits.
    Permit(u8),
    /// The second lock, alone.
    Second,
    /// A set of both locks, alone.
    Both,
}

impl Want {
    pub(crate) fn is_share(self) -> bool {
        matches!(self, Self::Reader | Self::Permit(_))
    }

    /// Is the one never served before the other if the other came first?
    pub(crate) fn excludes(self, other: Self) -> bool {
        self.overlaps(other) && (self != Self::Reader || other != Self::Reader)
    }

    /// Which of the two locks it wants.
    pub(crate) fn locks(self) -> &'static [usize] {
        match self {
            Self::Exclusive | Self::Reader | Self::Permit(_) => &[0],
            Self::Second => &[1],
            Self::Both => &[0, 1],
        }
    }

    pub(crate) fn is_set(self) -> bool {
        self.locks().len() > 1
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.locks().iter().any(|lock| other.locks().contains(lock))
    }
}
