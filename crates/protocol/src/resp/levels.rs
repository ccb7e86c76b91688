//! The decoder's position in a nested reply: how many values each open aggregate still needs.

use super::{DEPTH_MAX, ProtocolError};

/// The result of scanning one header or body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More bytes are needed.
    Starved,
    /// A header was scanned; its body or its elements follow.
    Opened,
    /// A value is complete.
    Done,
}

/// The aggregates around the current position, outermost first. Their number is limited, so
/// decoding needs neither the heap nor recursion.
#[derive(Debug, Default)]
pub(super) struct Levels {
    open: usize,
    levels: [Level; DEPTH_MAX],
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Values that are not complete; at least one while the level is open.
    missing: usize,
    /// An attribute is no value: the value that it prefixes follows it.
    attribute: bool,
}

impl Levels {
    /// Whether no aggregate is open.
    pub(super) fn is_outermost(&self) -> bool {
        self.open == 0
    }

    /// Opens an aggregate of `count` values.
    pub(super) fn enter(&mut self, count: usize, attribute: bool) -> Result<Step, ProtocolError> {
        // Also refused if it is empty: whether a depth is allowed does not depend on the contents.
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

    /// Counts a complete value, and the aggregates that it completes. Returns whether the reply
    /// needs more values.
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
    fn a_value_completes_each_level_whose_last_value_it_is() {
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
