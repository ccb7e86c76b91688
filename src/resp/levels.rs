//! Where in a nested reply the decoder is: how many values each open aggregate still misses.

use super::{DEPTH_MAX, ProtocolError};

/// How far one look at the input has led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More bytes are needed.
    Starved,
    /// A header was scanned; what it announces comes next.
    Opened,
    /// A value is complete.
    Done,
}

/// The aggregates around the current position, outermost first. Their number is limited, which is
/// why neither a heap nor recursion is needed to decode them.
#[derive(Debug, Default)]
pub(super) struct Levels {
    open: usize,
    levels: [Level; DEPTH_MAX],
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Values that have not been completed; at least one while the level is open.
    missing: usize,
    /// An attribute is no value: when it is complete, the value that it prefixes is still to come.
    attribute: bool,
}

impl Levels {
    /// Whether no aggregate is open.
    pub(super) fn is_outermost(&self) -> bool {
        self.open == 0
    }

    /// Opens an aggregate of `count` values.
    pub(super) fn enter(&mut self, count: usize, attribute: bool) -> Result<Step, ProtocolError> {
        // Refused even if it is empty, so that a depth is right or wrong whatever it contains.
        let Some(level) = self.levels.get_mut(self.open) else {
            return Err(ProtocolError::TooDeep);
        };
        if count == 0 {
            return Ok(if attribute { Step::Opened } else { Step::Done });
        }
        *level = Level { missing: count, attribute };
        self.open += 1;
        Ok(Step::Opened)
    }

    /// Counts a complete value, and with it the aggregates that it completes. Says whether
    /// anything is still to come.
    pub(super) fn value_done(&mut self) -> bool {
        while let Some(innermost) = self.open.checked_sub(1) {
            let level = &mut self.levels[innermost];
            level.missing -= 1;
            if level.missing > 0 {
                return true;
            }
            self.open = innermost;
            if level.attribute {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_completes_every_level_that_it_is_the_last_of() {
        let mut levels = Levels::default();
        assert!(!levels.value_done(), "a value outside any aggregate is the reply");
        assert_eq!(levels.enter(2, false), Ok(Step::Opened));
        assert!(levels.value_done());
        assert_eq!(levels.enter(1, false), Ok(Step::Opened));
        assert!(!levels.value_done());
        assert!(levels.is_outermost());
    }

    #[test]
    fn an_attribute_completes_nothing() {
        let mut levels = Levels::default();
        assert_eq!(levels.enter(0, true), Ok(Step::Opened));
        assert_eq!(levels.enter(1, true), Ok(Step::Opened));
        assert!(levels.value_done());
        assert!(levels.is_outermost());
        assert!(!levels.value_done());
    }

    #[test]
    fn the_depth_is_limited_also_for_empty_aggregates() {
        let mut levels = Levels::default();
        for _ in 0..DEPTH_MAX {
            assert_eq!(levels.enter(1, false), Ok(Step::Opened));
        }
        assert_eq!(levels.enter(0, false), Err(ProtocolError::TooDeep));
    }
}
