//! The checks at the end of a history.

use super::{Checker, Grant, Hold, Invariant, excludes};
use crate::register::check;
use redlatch_protocol::engine::Share;

/// Does the number of a later grant break the promise that numbers grow?
fn is_out_of_order(before: &Grant, grant: &Grant) -> bool {
    let is_reader = |grant: &Grant| grant.share == Some(Share::Reader);
    let is_after = before.now <= grant.asked;
    match (is_reader(before), is_reader(grant)) {
        // A reader has the number of the last writer, or one that no writer before it had.
        (_, true) => is_after && before.fence > grant.fence,
        (true, false) => is_after && before.fence >= grant.fence,
        // Two permits that are granted at the same time may get one number.
        (false, false) if !is_after && !excludes(before.share, grant.share) => false,
        (false, false) => before.fence == grant.fence || is_after && before.fence > grant.fence,
    }
}

impl Checker {
    /// Looks for fencing tokens that are not larger than one that was given before they were
    /// requested, or that were given twice.
    fn expect_order(&mut self) {
        let mut found = Vec::new();
        for (index, (resource, grant)) in self.fences.iter().enumerate() {
            for (other, before) in &self.fences[..index] {
                if other == resource && is_out_of_order(before, grant) {
                    found.push(format!("{before:?} before {grant:?} of {resource}"));
                }
            }
        }
        found
            .into_iter()
            .for_each(|text| self.report_violation(Invariant::Fencing, text));
    }

    /// Looks for registers whose operations have no order.
    fn expect_agreement(&mut self) {
        let of_registers = self.registers.by_register().into_iter();
        let found: Vec<String> = of_registers
            .filter_map(|(register, operations)| {
                Some(format!(
                    "register {register}: {}",
                    check(&operations).err()?
                ))
            })
            .collect();
        found
            .into_iter()
            .for_each(|text| self.report_violation(Invariant::Agreement, text));
    }

    fn expect_atomicity(&mut self) {
        let found = std::mem::take(&mut self.transactions.borrow_mut().wrong);
        found
            .into_iter()
            .for_each(|text| self.report_violation(Invariant::Atomicity, text));
    }

    /// Looks for two clients that held one lock at the same time, or shares of it that exclude each
    /// other.
    pub(crate) fn conclude(&mut self, now: u64) {
        self.expect_prompt_grants(now);
        self.expect_agreement();
        self.expect_atomicity();
        self.expect_order();
        self.holds.retain(|hold| hold.from < hold.until);
        self.holds.sort_by_key(|hold| (hold.resource, hold.from));
        let mut found = Vec::new();
        let mut held: Vec<&Hold> = Vec::new();
        for hold in &self.holds {
            held.retain(|other| other.resource == hold.resource && hold.from < other.until);
            let others = held
                .iter()
                .filter(|other| excludes(other.share, hold.share));
            found.extend(others.map(|other| format!("{other:?} and {hold:?}")));
            held.push(hold);
        }
        found
            .into_iter()
            .for_each(|text| self.report_violation(Invariant::MutualExclusion, text));
    }
}
