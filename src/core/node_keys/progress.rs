//! Whether a listing of the keys of a node comes to an end.

/// The most steps that a node is asked for: enough for two thousand million keys.
const STEPS_MAX: u64 = 1 << 22;

/// The most memory for names that only this node and the nodes after it have listed.
const BYTES_MAX: usize = 256 * 1024 * 1024;

/// How far a node has been read: a server that lists keys without end must not keep the caller, and
/// its memory, for ever.
#[derive(Default)]
pub(super) struct Progress {
    steps: u64,
    /// How much memory the names take that this node was the first to list.
    pub(super) bytes: usize,
    /// The cursor after the last step whose number is a power of two. A server that goes round in
    /// circles comes to it again (Brent's algorithm). Within one listing, no cursor of `SCAN` comes
    /// twice, even if the server's table grows or shrinks: the bits in reverse order only grow.
    mark: u64,
}

impl Progress {
    /// Goes on at this cursor, unless the list seems to have no end.
    pub(super) fn goes_on(&mut self, next: u64) -> bool {
        if next == self.mark {
            return false;
        }
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.mark = next;
        }
        self.steps < STEPS_MAX && self.bytes < BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_many_steps_and_many_names_are_no_progress() {
        let steps = |next: &dyn Fn(u64) -> u64| {
            let mut progress = Progress::default();
            (1..=2 * STEPS_MAX).take_while(|step| progress.goes_on(next(*step))).count() as u64
        };
        assert_eq!(steps(&|step| step), STEPS_MAX - 1);
        for length in [1, 2, 3, 7, 100, 1_000] {
            let most = 4 * (length + 50);
            assert!(steps(&|step| 1 + step % length) < most, "a circle of {length}");
            // It begins after 50 steps.
            assert!(steps(&|step| if step < 50 { 5_000 + step } else { step % length + 1 }) < most);
        }
        let mut progress = Progress { bytes: BYTES_MAX, ..Progress::default() };
        assert!(!progress.goes_on(1));
    }
}
