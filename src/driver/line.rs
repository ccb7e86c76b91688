//! Rounds that stand in line until others have ended.

use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Line<T> {
    waiting: VecDeque<T>,
    /// How many have begun and not ended.
    under_way: usize,
    /// The most that may be under way.
    limit: usize,
}

impl<T> Line<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: 0,
            limit,
        }
    }

    pub(super) fn push(&mut self, round: T) {
        self.waiting.push_back(round);
    }

    /// The round that begins next, if there is room for it. It must begin.
    pub(super) fn begin(&mut self) -> Option<T> {
        if self.under_way == self.limit {
            return None;
        }
        let round = self.waiting.pop_front()?;
        self.under_way += 1;
        Some(round)
    }

    /// A round that has begun has ended.
    pub(super) fn end(&mut self) {
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
}
