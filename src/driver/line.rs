//! Rounds that stand in line until others have ended: first those of calls that have a place among
//! the waiters, or a lock, or to which one is handed over.
//!
//! A place and a lock end if they are not renewed in time, and with them what was spent to get
//! them. So if there is room for no more than that, no call begins.

use std::collections::VecDeque;

/// The most rounds of a client's started calls under way at a time, and as many attempts of its
/// threads; the time of what stands in line does not run. A node's session has room for 512
/// commands that take or extend locks, of which those that are kept alive may have 320. What finds
/// no room waits there, whoever asks for it: so some is left to each.
pub(crate) const UNDER_WAY_MAX: usize = 160;

#[derive(Debug)]
pub(crate) struct Line<T> {
    awaited: VecDeque<T>,
    others: VecDeque<T>,
    /// How many have begun and not ended.
    under_way: usize,
    /// The most that may be under way.
    limit: usize,
}

impl<T> Line<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            awaited: VecDeque::new(),
            others: VecDeque::new(),
            under_way: 0,
            limit,
        }
    }

    pub(crate) fn push(&mut self, round: T) {
        self.others.push_back(round);
    }

    /// Adds a round that keeps a place or a lock, or takes one for which others wait.
    pub(crate) fn push_awaited(&mut self, round: T) {
        self.awaited.push_back(round);
    }

    /// Begins a round that does not stand in line, if there is room and nobody does.
    pub(crate) fn begin_new(&mut self) -> bool {
        let begins =
            self.under_way < self.limit && self.awaited.is_empty() && self.others.is_empty();
        self.under_way += usize::from(begins);
        begins
    }

    /// The round that begins next, if there is room for it. It must begin.
    pub(crate) fn begin(&mut self) -> Option<T> {
        if self.under_way == self.limit {
            return None;
        }
        let round = self
            .awaited
            .pop_front()
            .or_else(|| self.others.pop_front())?;
        self.under_way += 1;
        Some(round)
    }

    /// A round that has begun has ended.
    pub(crate) fn end(&mut self) {
        self.under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_begins_when_there_is_room_and_in_its_order() {
        let mut line = Line::new(2);
        for round in 1..=4 {
            line.push(round);
        }
        assert_eq!([line.begin(), line.begin()], [Some(1), Some(2)]);
        assert_eq!(line.begin(), None);
        line.end();
        assert_eq!([line.begin(), line.begin()], [Some(3), None]);
        line.end();
        line.end();
        assert_eq!([line.begin(), line.begin()], [Some(4), None]);
    }

    #[test]
    fn a_round_that_does_not_stand_in_line_begins_if_nobody_does() {
        let mut line = Line::new(2);
        assert!(line.begin_new());
        line.push(2);
        assert!(!line.begin_new(), "another stands in line");
        assert_eq!(line.begin(), Some(2));
        assert!(!line.begin_new(), "there is no room");
        line.end();
        assert!(line.begin_new());
    }

    #[test]
    fn what_keeps_a_place_or_a_lock_goes_before_what_begins() {
        let mut line = Line::new(3);
        for attempt in 1..=4 {
            line.push(attempt);
        }
        assert_eq!(line.begin(), Some(1));
        line.push_awaited(10);
        line.push_awaited(11);
        assert_eq!([line.begin(), line.begin()], [Some(10), Some(11)]);
        assert_eq!(line.begin(), None, "there is no room of its own for it");
        line.end();
        assert_eq!(line.begin(), Some(2));
    }
}
