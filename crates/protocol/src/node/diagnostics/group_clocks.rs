//! The clocks of the servers of a group: the end of a key is judged by whichever is master then.

use super::{ClockDifference, ClockReading, NodeStatus, NodeWarning};
use std::sync::Arc;

/// The clock of a server of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerClock {
    /// Where the server is, as its master says it.
    pub place: Arc<str>,
    pub reading: ClockReading,
}

/// The two clocks that are furthest apart, if that is more than the clients assume.
pub(super) fn warning(status: &NodeStatus) -> Option<NodeWarning> {
    let skew = status.group_options.as_ref()?.skew;
    let clocks = &status.server_clocks;
    let mut furthest: Option<(ClockDifference, &ServerClock, &ServerClock)> = None;
    for one in clocks {
        for other in clocks {
            let found = one.reading.difference_from(other.reading);
            let is_further = furthest.is_none_or(|(known, ..)| found.by > known.by);
            let is_too_far = found.by > skew.saturating_add(found.error);
            if found.is_ahead && is_further && is_too_far {
                furthest = Some((found, one, other));
            }
        }
    }
    furthest.map(|(difference, ahead, behind)| NodeWarning::ClocksApart {
        ahead: ahead.place.to_string(),
        behind: behind.place.to_string(),
        by: difference.by,
        skew,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::GroupOptions;
    use crate::time::Time;
    use std::time::Duration;

    const MINUTE: Duration = Duration::from_secs(60);

    /// The warning about clocks that show these milliseconds, each read in so many ms, one after
    /// another, and the skew of a second.
    fn warned(clocks: &[(i64, u64)]) -> Option<(String, String, Duration)> {
        let mut status = NodeStatus::unknown(&Arc::from("node"));
        status.group_options = Some(Arc::new(GroupOptions {
            tag: Arc::default(),
            bound: MINUTE,
            named_within: MINUTE,
            max_ttl: MINUTE,
            skew: Duration::from_secs(1),
            replicas: None,
        }));
        let mut now = 1_000;
        for (number, (ahead, took)) in clocks.iter().enumerate() {
            let millis = 1_000_000 + now + took / 2;
            let micros = millis.saturating_add_signed(*ahead) * 1_000;
            let between = (Time::from_millis(now), Time::from_millis(now + took));
            status.server_clocks.push(ServerClock {
                place: number.to_string().into(),
                reading: ClockReading { micros, between },
            });
            now += took;
        }
        match warning(&status)? {
            NodeWarning::ClocksApart {
                ahead, behind, by, ..
            } => Some((ahead, behind, by)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_clocks_that_are_furthest_apart_are_warned_of() {
        let found = |ahead: &str, behind: &str, by| {
            Some((
                ahead.to_owned(),
                behind.to_owned(),
                Duration::from_millis(by),
            ))
        };
        assert_eq!(warned(&[(0, 0), (1_000, 0), (500, 0)]), None);
        assert_eq!(warned(&[(0, 0), (1_001, 0)]), found("1", "0", 1_001));
        assert_eq!(warned(&[(1_001, 0), (0, 0)]), found("0", "1", 1_001));
        let apart = [(0, 20), (-800, 20), (700, 20), (0, 20)];
        assert_eq!(warned(&apart), found("2", "1", 1_500));
        assert_eq!(warned(&[(0, 0)]), None);
        assert_eq!(warned(&[]), None);
    }

    #[test]
    fn what_an_answer_has_taken_may_be_the_difference() {
        assert_eq!(warned(&[(0, 100), (1_100, 100)]), None);
        let found = warned(&[(0, 100), (1_102, 100)]);
        assert!(found.is_some_and(|(ahead, ..)| ahead == "1"));
    }
}
