//! The time by the clocks of the nodes, of which a minority may show anything.

use crate::engine::quorum;
use crate::error::ClocksError;
use std::time::Duration;

/// Two times between which the right one is, in microseconds since 1970, but for as much as the
/// right clocks differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodesTime {
    /// Not later than all right clocks.
    pub(super) earliest: u64,
    /// Not earlier than all right clocks.
    pub(super) latest: u64,
}

impl NodesTime {
    /// From what the clocks of some of the nodes show. If all answer, a wrong clock makes no
    /// difference; if some do not, it may leave doubt, which must not be more than `doubt_max`.
    pub(super) fn new(
        mut readings: Vec<u64>,
        nodes: usize,
        doubt_max: Duration,
    ) -> Result<Self, ClocksError> {
        let (answered, needed) = (readings.len(), quorum(nodes));
        if answered < needed {
            return Err(ClocksError::TooFew { answered, needed });
        }
        readings.sort_unstable();
        // So many may be wrong: beyond them, in either direction, is a right one.
        let wrong = nodes - needed;
        let (earliest, latest) = (readings[answered - 1 - wrong], readings[wrong]);
        // Of an even number of nodes that all answer, the two bounds are in the other order.
        let (earliest, latest) = (earliest.min(latest), earliest.max(latest));
        let by = Duration::from_micros(latest - earliest);
        if by > doubt_max { Err(ClocksError::Differ { by }) } else { Ok(Self { earliest, latest }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: [u64; 7] = [1_000, 1_003, 999, 1_001, 1_002, 1_000, 998];

    #[test]
    fn a_minority_of_wrong_clocks_moves_neither_bound_beyond_the_right_ones() {
        for nodes in 1..=7 {
            let wrong_max = nodes - quorum(nodes);
            // Each node is right, far behind, far ahead, or silent.
            for case in 0..4_usize.pow(u32::try_from(nodes).unwrap()) {
                let kind = |node| case / 4_usize.pow(u32::try_from(node).unwrap()) % 4;
                let kinds: Vec<usize> = (0..nodes).map(kind).collect();
                let wrong = kinds.iter().filter(|kind| [1, 2].contains(*kind)).count();
                let silent = kinds.iter().filter(|kind| **kind == 3).count();
                if wrong > wrong_max || nodes - silent < quorum(nodes) {
                    continue;
                }
                let readings = kinds.iter().zip(RIGHT).filter_map(|(kind, right)| match kind {
                    0 => Some(right),
                    1 => Some(7),
                    2 => Some(1_000_000),
                    _ => None,
                });
                let time = NodesTime::new(readings.collect(), nodes, Duration::MAX).unwrap();
                let right = RIGHT[..nodes].iter();
                assert!(time.earliest <= *right.clone().max().unwrap(), "{kinds:?} {time:?}");
                assert!(time.latest >= *right.clone().min().unwrap(), "{kinds:?} {time:?}");
                if silent == 0 {
                    let range = *right.clone().min().unwrap()..=*right.max().unwrap();
                    assert!(range.contains(&time.earliest) && range.contains(&time.latest));
                }
            }
        }
    }

    #[test]
    fn too_few_clocks_and_clocks_in_doubt_are_refused() {
        let (second, few) =
            (Duration::from_secs(1), ClocksError::TooFew { answered: 1, needed: 2 });
        assert_eq!(NodesTime::new(vec![5], 3, second), Err(few));
        let two = |ahead: u64| NodesTime::new(vec![10_000_000 + ahead, 10_000_000], 3, second);
        assert_eq!(two(1_000_000).map(|time| time.latest), Ok(11_000_000));
        let by = Duration::from_micros(1_000_001);
        assert_eq!(two(1_000_001), Err(ClocksError::Differ { by }));
        // Also if all answer, and none may be wrong.
        let all = NodesTime::new(vec![10_000_000, 11_000_001], 2, second);
        assert_eq!(all, Err(ClocksError::Differ { by }));
    }
}
