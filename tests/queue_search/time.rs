//! How long something lasts on a node, without a clock.

/// How long a reservation, or a lock that was left, lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Time {
    /// Is the key kept for longer, in which the next waiter asks?
    pub(crate) has_grace: bool,
    /// Is it over, so that who asks passes it on?
    pub(crate) is_over: bool,
    /// How often it ends without being over: see `Mistake::RenewalProlongs`.
    pub(crate) spare: u8,
}

impl Time {
    /// Some of it passes. Is the key still there?
    pub(crate) fn end(&mut self) -> bool {
        let is_kept = self.spare > 0 || self.has_grace && !self.is_over;
        self.is_over = self.spare == 0;
        self.spare = self.spare.saturating_sub(1);
        is_kept
    }
}
