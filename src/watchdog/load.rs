//! How many locks can be kept alive: admission control, from how often locks are extended and how
//! long a round takes.
//!
//! At most [`UNDER_WAY_MAX`] is under way at a time, for the length of a round. Locks that need
//! more extensions than that cannot be kept alive, so a lock beyond the capacity is refused before
//! it is taken, and not lost later.

use crate::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most extensions under way at a time. A node's session accepts 512 commands that take or
/// extend locks before it counts as overloaded; the rest is for other threads' requests, and those
/// of calls that take no thread: see `driver_loop`.
pub(super) const UNDER_WAY_MAX: usize = 320;

/// This many bytes of keys count as one extension (a unit), since bytes are limited as well: to 512
/// KiB at a node, keys included.
const BYTES_PER_UNIT: usize = 800;

/// How many periods late an extension may be at full capacity: after two thirds of the validity,
/// which leaves a third for another one.
const LATENESS_MAX: u64 = 2;

/// Rates are counted in millionths: thousandths would be too coarse for locks of a day.
const MICRO: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Load {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: usize,
    /// Millionths of a unit per second.
    rate: u64,
    /// The smoothed time of a round; zero before the first.
    round: Duration,
}

/// How much of the capacity one lock takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    ttl: Duration,
    rate: u64,
}

/// The capacity that is reserved for one lock, until it is freed.
#[derive(Debug)]
pub(crate) struct ReservedCapacity {
    load: Arc<Load>,
    demand: Demand,
    is_freed: AtomicBool,
}

/// How many units an extension counts whose keys have this many bytes.
pub(super) fn units(key_bytes: usize) -> usize {
    key_bytes.div_ceil(BYTES_PER_UNIT).clamp(1, UNDER_WAY_MAX)
}

impl Demand {
    /// A lock with this ttl that is extended once in each period, with keys of this many bytes.
    pub(crate) fn new(ttl: Duration, period: Duration, key_bytes: usize) -> Self {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let per_second = MICRO.saturating_mul(1_000_000_000).div_ceil(period);
        let units = u64::try_from(units(key_bytes)).unwrap_or(u64::MAX);
        Self {
            ttl,
            rate: per_second.saturating_mul(units),
        }
    }
}

impl Load {
    /// Can such a lock be kept alive as well? An error if with it more extensions would be needed
    /// than can be made.
    pub(crate) fn admit(&self, demand: Demand) -> Result<(), Error> {
        self.lock().admit(demand)
    }

    /// Reserves capacity for a lock, if there still is some: since it was admitted, others may have
    /// reserved theirs. Errors are those of [`admit`](Self::admit).
    pub(crate) fn reserve(self: &Arc<Self>, demand: Demand) -> Result<ReservedCapacity, Error> {
        let mut state = self.lock();
        state.admit(demand)?;
        state.kept += 1;
        state.rate = state.rate.saturating_add(demand.rate);
        Ok(ReservedCapacity {
            load: Arc::clone(self),
            demand,
            is_freed: AtomicBool::new(false),
        })
    }

    pub(crate) fn record_round(&self, round: Duration) {
        let mut state = self.lock();
        let before = if state.round.is_zero() {
            round
        } else {
            state.round
        };
        state.round = before - before / 8 + round / 8;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admit(&self, demand: Demand) -> Result<(), Error> {
        let Self { kept, rate, round } = *self;
        let Some(most) = capacity(round) else {
            return Ok(());
        };
        // A single lock is admitted in any case: only a round shows how long rounds take now.
        if kept == 0 || rate.saturating_add(demand.rate) <= most {
            return Ok(());
        }
        let most = usize::try_from(most / demand.rate.max(1)).unwrap_or(usize::MAX);
        Err(Error::TooManyKeptAlive {
            kept,
            most,
            ttl: demand.ttl,
            round,
        })
    }
}

/// How many millionths of a unit per second can be extended, if that is known.
fn capacity(round: Duration) -> Option<u64> {
    let most = u128::from(MICRO) * u128::from(LATENESS_MAX) * UNDER_WAY_MAX as u128 * 1_000_000_000;
    u64::try_from(most.checked_div(round.as_nanos())?).ok()
}

impl ReservedCapacity {
    /// The lock is not kept alive any more. A second call changes nothing.
    pub(crate) fn free(&self) {
        if !self.is_freed.swap(true, Ordering::Relaxed) {
            let mut state = self.load.lock();
            state.kept -= 1;
            state.rate = state.rate.saturating_sub(self.demand.rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// A lock of 3 s.
    fn demand(key_bytes: usize) -> Demand {
        Demand::new(3_000 * MILLISECOND, 989 * MILLISECOND, key_bytes)
    }

    /// How many such locks are admitted.
    fn fill(load: &Arc<Load>, demand: Demand) -> (Vec<ReservedCapacity>, Error) {
        let mut reserved = Vec::new();
        loop {
            match load.reserve(demand) {
                Ok(capacity) => reserved.push(capacity),
                Err(error) => return (reserved, error),
            }
            assert!(reserved.len() < 1_000_000, "there is a limit");
        }
    }

    #[test]
    fn as_many_are_admitted_as_can_be_extended_with_time_for_a_second_try() {
        let load = Arc::<Load>::default();
        load.record_round(50 * MILLISECOND);
        let (reserved, error) = fill(&load, demand(20));
        // 320 in a round, 20 rounds a second, and 1.978 s for each: two thirds of the validity.
        assert_eq!(reserved.len(), 12_659);
        let Error::TooManyKeptAlive {
            kept,
            most,
            ttl,
            round,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((kept, most), (12_659, 12_659));
        assert_eq!((ttl, round), (3_000 * MILLISECOND, 50 * MILLISECOND));
        // Freed capacity makes room, once.
        reserved[0].free();
        reserved[0].free();
        let (more, _) = fill(&load, demand(20));
        assert_eq!(more.len(), 1);
        assert!(
            load.admit(Demand::new(60_000 * MILLISECOND, u32::MAX * MILLISECOND, 1))
                .is_ok()
        );
    }

    #[test]
    fn threads_that_were_all_admitted_do_not_reserve_more_than_there_is() {
        let load = Arc::<Load>::default();
        load.record_round(50 * MILLISECOND);
        let (mut reserved, _) = fill(&load, demand(20));
        reserved.drain(1..4).for_each(|capacity| capacity.free());
        let all = Barrier::new(16);
        let kept = thread::scope(|scope| {
            let try_it = || {
                load.admit(demand(20))
                    .expect("there is room for three more");
                all.wait();
                load.reserve(demand(20)).ok()
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(try_it)).collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().unwrap())
                .count()
        });
        assert_eq!(kept, 3);
    }

    #[test]
    fn a_single_lock_is_admitted_however_slow_the_nodes_were() {
        let load = Arc::<Load>::default();
        load.record_round(Duration::from_secs(24 * 3600));
        let reserved = load.reserve(demand(20)).expect("there is no other");
        assert!(load.admit(demand(20)).is_err());
        reserved.free();
        assert!(load.admit(demand(20)).is_ok());
    }

    #[test]
    fn long_keys_and_slow_nodes_leave_room_for_fewer_locks() {
        let load = Arc::<Load>::default();
        assert!(load.admit(demand(1)).is_ok(), "no round was recorded yet");
        load.record_round(50 * MILLISECOND);
        assert_eq!(fill(&load, demand(64 * 1024)).0.len(), 12_659 / 82);
        (0..100).for_each(|_| load.record_round(100 * MILLISECOND));
        let (reserved, _) = fill(
            &Arc::new(Load {
                state: Mutex::new(State {
                    round: load.lock().round,
                    ..State::default()
                }),
            }),
            demand(20),
        );
        assert!(
            (6_329..6_400).contains(&reserved.len()),
            "{}",
            reserved.len()
        );
    }
}
