//! What a client wants.

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
