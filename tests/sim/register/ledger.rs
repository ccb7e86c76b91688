//! The disks of the sides of transactions, which outlive their processes. It checks that all sides
//! commit, once, or none does.

use redlatch_registers::transaction::{Disk, JoinStep};
use std::collections::BTreeSet;

/// How many clients take part in each transaction.
pub(crate) const SIDES: usize = 3;

/// All transactions, as the disks of their sides have them.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    transactions: Vec<Transaction>,
    /// The sides that must recover once more, as the faults are over.
    awaited: Option<BTreeSet<usize>>,
    pub(crate) wrong: Vec<String>,
}

#[derive(Debug, Default)]
struct Transaction {
    is_begun: bool,
    /// Has one client all of its sides? Nobody else is asked to join it.
    is_whole: bool,
    sides: [Side; SIDES],
}

#[derive(Clone, Copy, Debug)]
struct Side {
    disk: Disk,
    applied: u32,
    is_undone: bool,
    /// Has it heard how it has ended?
    is_ended: bool,
}

impl Default for Side {
    fn default() -> Self {
        Self {
            disk: Disk::Nothing,
            applied: 0,
            is_undone: false,
            is_ended: false,
        }
    }
}

impl Ledger {
    /// How many were begun, also without success.
    pub(crate) fn len(&self) -> usize {
        self.transactions.len()
    }

    /// Those that have a record.
    fn begun(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|number| self.transactions[*number].is_begun)
    }

    /// Those that can be joined.
    pub(crate) fn joinable(&self) -> Vec<usize> {
        self.begun()
            .filter(|number| !self.transactions[*number].is_whole)
            .collect()
    }

    /// The oldest that this side does not know to be over.
    pub(crate) fn next(&self, side: usize) -> Option<usize> {
        self.joinable()
            .into_iter()
            .find(|number| !self.transactions[*number].sides[side].is_ended)
    }

    /// The faults are over: each side recovers once more.
    pub(crate) fn await_all(&mut self) {
        self.awaited = Some((0..SIDES).collect());
    }

    /// Must this side recover once more?
    pub(crate) fn awaits(&self, side: usize) -> bool {
        self.awaited
            .as_ref()
            .is_some_and(|awaited| awaited.contains(&side))
    }

    /// Have all sides recovered?
    pub(crate) fn is_over(&self) -> bool {
        self.awaited.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// This side has recovered. Returns the transactions whose records must be gone.
    pub(crate) fn recovered(&mut self, side: usize) -> Vec<usize> {
        self.awaited
            .iter_mut()
            .for_each(|awaited| _ = awaited.remove(&side));
        if self.is_over() {
            self.begun().collect()
        } else {
            Vec::new()
        }
    }

    /// The number of a new transaction.
    pub(crate) fn add(&mut self) -> usize {
        self.transactions.push(Transaction::default());
        self.len() - 1
    }

    /// It has a record.
    pub(crate) fn begins(&mut self, number: usize) {
        self.transactions[number].is_begun = true;
    }

    /// The same, and one client has all sides.
    pub(crate) fn begins_whole(&mut self, number: usize) {
        self.begins(number);
        self.transactions[number].is_whole = true;
    }

    pub(crate) fn ends(&mut self, number: usize, side: usize) {
        self.transactions[number].sides[side].is_ended = true;
    }

    pub(crate) fn disk(&self, number: usize, side: usize) -> Disk {
        self.transactions[number].sides[side].disk
    }

    pub(crate) fn report(&mut self, number: usize, text: &str) {
        self.wrong.push(format!("transaction {number} {text}"));
    }

    /// Has a side committed?
    pub(crate) fn has_committed(&self, number: usize) -> bool {
        self.transactions[number]
            .sides
            .iter()
            .any(|side| side.applied > 0)
    }

    /// Takes a step on the disk of a side.
    pub(crate) fn step(&mut self, number: usize, side: usize, step: JoinStep) {
        let sides = &mut self.transactions[number].sides;
        let it = &mut sides[side];
        match step {
            JoinStep::Prepare => it.disk = Disk::Prepared,
            JoinStep::Commit if it.disk == Disk::Prepared => {
                (it.disk, it.applied) = (Disk::Committed, it.applied + 1);
            }
            JoinStep::RollBack => {
                it.is_undone |= it.disk == Disk::Prepared;
                it.disk = Disk::Nothing;
            }
            JoinStep::Forget => it.disk = Disk::Nothing,
            _ => {}
        }
        let is_applied = sides.iter().any(|side| side.applied > 0);
        if is_applied && sides.iter().any(|side| side.is_undone && side.applied == 0) {
            self.report(number, "is committed here and rolled back there");
        } else if sides.iter().any(|side| side.applied > 1) {
            self.report(number, "is committed twice");
        }
    }
}
