//! What keeps a session alive: writes that change nothing, and find out what was removed.

use crate::message::{EnsembleError, EnsembleRequest, MultiOperation, OperationResult, Results};
use redlatch_protocol::time::Time;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// The most znodes that one beat checks.
const CHECKS_MAX: usize = 128;

/// After this time without a znode and a request a session is ended.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The znodes of a session, and when it last said something.
#[derive(Debug, Default)]
pub(super) struct Beats {
    paths: BTreeSet<Arc<str>>,
    /// The last path that was checked: the next beat goes on behind it.
    checked: Option<Arc<str>>,
    /// When a request was last sent, and the last checks.
    pub(super) sent_at: Time,
    checked_at: Time,
    /// When the session was last of use to a caller.
    pub(super) used_at: Time,
}

impl Beats {
    pub(super) fn add(&mut self, path: Arc<str>) {
        self.paths.insert(path);
    }

    /// Returns whether it was there.
    pub(super) fn remove(&mut self, path: &str) -> bool {
        self.paths.remove(path)
    }

    pub(super) fn clear(&mut self) {
        self.paths.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// A new connection: only a write proves that the session lives, so one is due at once.
    pub(super) fn connected(&mut self, now: Time) {
        self.sent_at = now;
        self.checked_at = Time::ZERO;
        self.used_at = now;
    }

    /// When the next beat is due. However much a busy client writes, its znodes are checked.
    pub(super) fn due(&self, beat: Duration) -> Time {
        if self.is_empty() {
            self.sent_at.after(beat)
        } else {
            self.checked_at.after(beat)
        }
    }

    /// Has nobody needed the session for long?
    pub(super) fn is_idle(&self, now: Time) -> bool {
        self.is_empty() && now.since(self.used_at) >= IDLE_MAX
    }

    /// The next beat, with its checks if it has some.
    pub(super) fn next(&mut self, now: Time) -> (EnsembleRequest, Arc<[MultiOperation]>) {
        self.checked_at = now;
        if self.is_empty() {
            return (EnsembleRequest::Sync(Arc::from("/")), Arc::from([]));
        }
        let behind = match &self.checked {
            Some(path) => (Bound::Excluded(Arc::clone(path)), Bound::Unbounded),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let rest = self.paths.range::<Arc<str>, _>(behind);
        // Not twice the same, if there are few.
        let turn = rest
            .chain(&self.paths)
            .take(CHECKS_MAX.min(self.paths.len()));
        let checks: Arc<[MultiOperation]> = turn.cloned().map(MultiOperation::Check).collect();
        if let Some(MultiOperation::Check(last)) = checks.last() {
            self.checked = Some(Arc::clone(last));
        }
        (EnsembleRequest::Multi(Arc::clone(&checks)), checks)
    }

    /// The znode whose check has failed because it is not there. Of several it is the first, as a
    /// server checks nothing behind it.
    pub(super) fn missing(checks: &[MultiOperation], results: &Results<'_>) -> Option<Arc<str>> {
        let no_node = OperationResult::Failed(Some(EnsembleError::NoNode));
        let at = results.iter().position(|result| result == no_node)?;
        match checks.get(at) {
            Some(MultiOperation::Check(path)) => Some(Arc::clone(path)),
            _ => None,
        }
    }

    /// A beat has found that this znode is not there: as others may have been removed with it,
    /// which it did not check, the next beat is due at once, and goes on behind it.
    pub(super) fn found_missing(&mut self, path: &Arc<str>) {
        self.checked = Some(Arc::clone(path));
        self.checked_at = Time::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(beats: &mut Beats) -> Vec<String> {
        let (_, checks) = beats.next(Time::ZERO);
        let path = |check: &MultiOperation| match check {
            MultiOperation::Check(path) => path.to_string(),
            other => panic!("{other:?}"),
        };
        checks.iter().map(path).collect()
    }

    #[test]
    fn all_znodes_are_checked_in_turn() {
        let mut beats = Beats::default();
        let (request, checks) = beats.next(Time::ZERO);
        assert!(matches!(request, EnsembleRequest::Sync(_)) && checks.is_empty());
        for number in 0..300 {
            beats.add(format!("/{number:03}").into());
        }
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            let checked = checked(&mut beats);
            assert_eq!(checked.len(), CHECKS_MAX);
            seen.extend(checked);
        }
        assert_eq!(seen.len(), 300);
        for number in 2..300 {
            beats.remove(&format!("/{number:03}"));
        }
        let mut two = checked(&mut beats);
        two.sort();
        assert_eq!(two, ["/000", "/001"]);
    }

    #[test]
    fn a_write_is_due_at_once_on_a_new_connection_and_then_with_each_beat() {
        let beat = Duration::from_millis(100);
        let at = Time::from_millis;
        let mut beats = Beats::default();
        beats.connected(at(1_000));
        assert_eq!(beats.due(beat), at(1_100), "nothing to keep");
        beats.add("/a".into());
        assert!(beats.due(beat) <= at(1_000));
        beats.next(at(1_010));
        beats.sent_at = at(1_050);
        assert_eq!(beats.due(beat), at(1_110), "other requests check nothing");
        beats.remove("/a");
        assert_eq!(beats.due(beat), at(1_150));
        assert!(!beats.is_idle(at(60_999)) && beats.is_idle(at(61_000)));
    }
}
