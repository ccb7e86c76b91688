//! The checks at the end of a history.

use super::{Checker, Hold, Invariant};

impl Checker {
    /// Looks for fencing tokens that are not larger than one that was given before they were
    /// requested, or that were given twice.
    fn expect_order(&mut self) {
        let mut found = Vec::new();
        for (index, (resource, grant)) in self.fences.iter().enumerate() {
            for (other, before) in &self.fences[..index] {
                let is_equal = before.fence == grant.fence;
                let is_smaller = before.fence > grant.fence && before.now <= grant.asked;
                if other == resource && (is_equal || is_smaller) {
                    found.push(format!("{before:?} before {grant:?} of {resource}"));
                }
            }
        }
        found.into_iter().for_each(|text| self.report_violation(Invariant::Fencing, text));
    }

    /// Looks for two clients that held one lock at the same time.
    pub(crate) fn conclude(&mut self, now: u64) {
        self.expect_prompt_grants(now);
        self.expect_order();
        self.holds.retain(|hold| hold.from < hold.until);
        self.holds.sort_by_key(|hold| (hold.resource, hold.from));
        let mut found = Vec::new();
        let mut last: Option<&Hold> = None;
        for hold in &self.holds {
            match last {
                Some(other) if other.resource == hold.resource && hold.from < other.until => {
                    found.push(format!("{other:?} and {hold:?}"));
                    if hold.until > other.until {
                        last = Some(hold);
                    }
                }
                _ => last = Some(hold),
            }
        }
        found.into_iter().for_each(|text| self.report_violation(Invariant::MutualExclusion, text));
    }
}
