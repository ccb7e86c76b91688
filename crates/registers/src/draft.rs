//! The changes that one ballot makes: one, or those of several threads, one after another.

use super::{Ballot, Stored, Version};
use std::sync::Arc;

/// What a ballot is to propose: the value as it is, and the changes of it so far.
#[derive(Clone, Debug)]
pub struct Draft {
    ballot: Ballot,
    /// What was there before the ballot; without a value, the number of the last deletion, or a
    /// floor above it.
    base: Result<Stored, u64>,
    current: Option<Stored>,
    changes: usize,
}

impl Draft {
    pub(super) fn new(ballot: Ballot, base: Result<Stored, u64>) -> Self {
        Self { ballot, current: base.clone().ok(), base, changes: 0 }
    }

    /// The value, with the changes so far; `None` if there is none.
    pub fn current(&self) -> Option<&Stored> {
        self.current.as_ref()
    }

    /// Replaces the value. A fencing token that is given becomes the value's if it is the largest.
    pub fn put(&mut self, bytes: Arc<[u8]>, fence: Option<u64>) -> Version {
        let before = self.current.as_ref().and_then(Stored::fence);
        let fence = fence.max(before).unwrap_or(0);
        let made = (self.ballot, self.changes);
        let value = Stored::changed(self.base.as_ref().map_err(|gone| *gone), made, bytes, fence);
        self.changes += 1;
        self.current.insert(value).version()
    }

    /// Notes when the value was written, in microseconds since 1970.
    pub fn date(&mut self, written: u64) {
        if let Some(value) = &mut self.current {
            value.date(written);
        }
    }

    /// Deletes the value.
    pub fn delete(&mut self) {
        if self.current.take().is_some() {
            // From here on the register is a new one.
            self.base = Err(self.ballot.number());
            self.changes += 1;
        }
    }

    /// Is there no change?
    pub fn is_unchanged(&self) -> bool {
        self.changes == 0
    }

    /// The ballot that is to propose it.
    pub fn ballot(&self) -> Ballot {
        self.ballot
    }

    pub(super) fn into_current(self) -> Option<Stored> {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::COMBINED_MAX;
    use redlatch_protocol::engine::Token;

    fn ballot(number: u64) -> Ballot {
        Ballot::new(number, Token::new([7; Token::LEN])).unwrap()
    }

    #[test]
    fn the_changes_of_one_ballot_have_versions_of_their_own_and_are_remembered_as_one() {
        let mut draft = Draft::new(ballot(5), Err(3));
        assert!(draft.is_unchanged());
        let first = draft.put(Arc::from(&b"a"[..]), Some(9));
        let second = draft.put(Arc::from(&b"b"[..]), Some(3));
        assert!(first < second);
        let value = draft.into_current().unwrap();
        assert_eq!((&**value.bytes(), value.fence()), (&b"b"[..], Some(9)));
        assert!(value.was_made_by(ballot(5)) && value.remembers_since(0));
        assert_eq!(value.gone(), 3);

        let mut draft = Draft::new(ballot(6), Ok(value));
        let third = draft.put(Arc::from(&b"c"[..]), None);
        assert!(second < third);
        let value = draft.current().unwrap();
        assert_eq!((value.gone(), value.fence()), (3, Some(9)));
    }

    #[test]
    fn a_register_that_is_deleted_and_created_in_one_ballot_is_a_new_one() {
        let mut draft = Draft::new(ballot(5), Err(3));
        draft.put(Arc::from(&b"a"[..]), Some(9));
        let value = draft.into_current();
        let mut draft = Draft::new(ballot(6), value.ok_or(0));
        draft.delete();
        assert!(draft.current().is_none() && !draft.is_unchanged());
        draft.delete();
        let version = draft.put(Arc::from(&b"b"[..]), None);
        let value = draft.into_current().unwrap();
        assert_eq!((value.gone(), value.fence()), (6, None));
        assert_eq!(version, Version::new(ballot(6), 1));
    }

    #[test]
    fn there_is_room_for_as_many_changes_as_a_ballot_has_versions() {
        let mut draft = Draft::new(ballot(5), Err(3));
        let put = |_| draft.put(Arc::from([]), None);
        let versions: Vec<Version> = (0..COMBINED_MAX).map(put).collect();
        assert!(versions.is_sorted_by(|a, b| a < b));
    }
}
