//! A participant in memory, which counts what it does and can fail.

use redlatch::transaction::{Participant, TransactionId};

/// A step of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Prepare,
    Commit,
    Forget,
}

#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) prepared: Vec<TransactionId>,
    pub(crate) committed: Vec<TransactionId>,
    pub(crate) prepared_times: u32,
    pub(crate) applied: u32,
    pub(crate) rolled_back: u32,
    /// The step that fails.
    pub(crate) fails: Option<Step>,
}

impl Shelf {
    pub(crate) fn failing(step: Step) -> Self {
        Self {
            fails: Some(step),
            ..Self::default()
        }
    }

    /// Does it remember no transaction?
    pub(crate) fn is_empty(&self) -> bool {
        self.prepared.is_empty() && self.committed.is_empty()
    }

    fn may(&self, step: Step, name: &'static str) -> Result<(), &'static str> {
        if self.fails == Some(step) {
            Err(name)
        } else {
            Ok(())
        }
    }
}

impl Participant for Shelf {
    type Error = &'static str;

    fn prepare(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.may(Step::Prepare, "prepare")?;
        assert!(!self.prepared.contains(id), "prepared twice");
        self.prepared.push(*id);
        self.prepared_times += 1;
        Ok(())
    }

    fn commit(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.may(Step::Commit, "commit")?;
        let index = self
            .prepared
            .iter()
            .position(|known| known == id)
            .expect("it is prepared");
        self.committed.push(self.prepared.swap_remove(index));
        self.applied += 1;
        Ok(())
    }

    fn roll_back(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.prepared.retain(|known| known != id);
        self.rolled_back += 1;
        Ok(())
    }

    fn prepared(&mut self) -> Result<Vec<TransactionId>, Self::Error> {
        Ok(self.prepared.clone())
    }

    fn committed(&mut self) -> Result<Vec<TransactionId>, Self::Error> {
        Ok(self.committed.clone())
    }

    fn forget(&mut self, id: &TransactionId) -> Result<(), Self::Error> {
        self.may(Step::Forget, "forget")?;
        self.committed.retain(|known| known != id);
        Ok(())
    }
}
