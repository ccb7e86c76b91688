//! How often a history has readers and permits.

use crate::random::Random;

/// The shares of locks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    /// How often a share is wanted, of the first this many resources.
    pub(crate) permille: u64,
    pub(crate) resources: u64,
    /// How often it is a reader's.
    pub(crate) readers_permille: u64,
    /// The numbers of permits of which one is wanted.
    pub(crate) permits: [u32; 3],
    /// How often the key of a lock that is released stays for a while, shared or not.
    pub(crate) keep_permille: u64,
}

impl Sharing {
    /// Nobody wants a share.
    pub(super) const NONE: Self = Self {
        permille: 0,
        resources: 0,
        readers_permille: 0,
        permits: [1; 3],
        keep_permille: 0,
    };

    pub(super) fn draw(random: &mut Random, resources: u64) -> Self {
        let permille = random.pick(&[0, 0, 300, 700, 950]);
        if permille == 0 {
            return Self::NONE;
        }
        Self {
            permille,
            resources: random.between(1, resources),
            readers_permille: random.pick(&[0, 500, 500, 1_000]),
            permits: random.pick(&[[1; 3], [2; 3], [3; 3], [2, 2, 3], [1, 3, 5]]),
            keep_permille: random.pick(&[0, 0, 300]),
        }
    }

    /// Nobody wants anything but to read.
    pub(super) fn readers_only(resources: u64) -> Self {
        Self {
            permille: 1_000,
            resources,
            readers_permille: 1_000,
            ..Self::NONE
        }
    }

    pub(crate) fn are_all_readers(&self) -> bool {
        self.permille == 1_000 && self.readers_permille == 1_000
    }
}
