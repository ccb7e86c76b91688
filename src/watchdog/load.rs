//! How many locks can be kept alive: arithmetic over how often they are renewed and how long a
//! round takes.
//!
//! So much may be under way at a time ([`SHARE_MAX`]), and comes back after a round. More than that
//! cannot be renewed, whoever asks for it, so a lock too many is refused before it is taken, and
//! not lost after.

use crate::error::LockError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most renewals under way at a time. A node takes 512 commands that take or prolong locks
/// before it counts as overloaded; the rest is for other threads' requests.
pub(super) const SHARE_MAX: usize = 320;

/// So many bytes of keys count as one renewal, since bytes are limited as well: to 512 KiB at a
/// node, keys and all.
const BYTES_PER_UNIT: usize = 800;

/// By how many times later than planned a renewal may come where all are kept that can be: after
/// two thirds of the validity, which leaves a third for another one.
const LATENESS_MAX: u64 = 2;

/// A thousandth of a renewal per second would be too coarse for locks of a day.
const MICRO: u64 = 1_000_000;

/// What is kept alive by one client, and how long it takes.
#[derive(Debug, Default)]
pub(crate) struct Load {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: usize,
    /// Millionths of a unit per second.
    rate: u64,
    /// How long a round takes, smoothed; zero as long as there was none.
    round: Duration,
}

/// What keeping one lock alive takes of the whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    ttl: Duration,
    rate: u64,
}

/// The share of a lock that is kept alive, until it is given up or lost.
#[derive(Debug)]
pub(crate) struct CapacityShare {
    load: Arc<Load>,
    demand: Demand,
    is_over: AtomicBool,
}

/// What a renewal counts whose keys have so many bytes.
pub(super) fn units(key_bytes: usize) -> usize {
    key_bytes.div_ceil(BYTES_PER_UNIT).clamp(1, SHARE_MAX)
}

impl Demand {
    /// A lock with this ttl, which is renewed once in each period, and whose keys have so many
    /// bytes.
    pub(crate) fn new(ttl: Duration, period: Duration, key_bytes: usize) -> Self {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let per_second = MICRO.saturating_mul(1_000_000_000).div_ceil(period);
        let units = u64::try_from(units(key_bytes)).unwrap_or(u64::MAX);
        Self { ttl, rate: per_second.saturating_mul(units) }
    }
}

impl Load {
    /// Can such a lock be kept alive as well?
    ///
    /// # Errors
    ///
    /// With it, there would be more to renew than comes back from the nodes.
    pub(crate) fn admit(&self, demand: Demand) -> Result<(), LockError> {
        self.lock().admit(demand)
    }

    /// Counts a lock from now on, if it still can be kept alive: others may have been admitted
    /// since it was, and taken before it.
    ///
    /// # Errors
    ///
    /// As [`admit`](Self::admit).
    pub(crate) fn keep(self: &Arc<Self>, demand: Demand) -> Result<CapacityShare, LockError> {
        let mut state = self.lock();
        state.admit(demand)?;
        state.kept += 1;
        state.rate = state.rate.saturating_add(demand.rate);
        Ok(CapacityShare { load: Arc::clone(self), demand, is_over: AtomicBool::new(false) })
    }

    /// A round took so long.
    pub(crate) fn took(&self, round: Duration) {
        let mut state = self.lock();
        let before = if state.round.is_zero() { round } else { state.round };
        state.round = before - before / 8 + round / 8;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn admit(&self, demand: Demand) -> Result<(), LockError> {
        let Self { kept, rate, round } = *self;
        let Some(most) = capacity(round) else { return Ok(()) };
        // One lock alone is kept in any case: how long a round takes now, only a round can tell.
        if kept == 0 || rate.saturating_add(demand.rate) <= most {
            return Ok(());
        }
        let most = usize::try_from(most / demand.rate.max(1)).unwrap_or(usize::MAX);
        Err(LockError::TooManyKept { kept, most, ttl: demand.ttl, round })
    }
}

/// Millionths of a unit per second that can be renewed, if that is known.
fn capacity(round: Duration) -> Option<u64> {
    let most = u128::from(MICRO) * u128::from(LATENESS_MAX) * SHARE_MAX as u128 * 1_000_000_000;
    u64::try_from(most.checked_div(round.as_nanos())?).ok()
}

impl CapacityShare {
    /// The lock is not kept alive any more. Saying it again changes nothing.
    pub(crate) fn end(&self) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
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
    fn fill(load: &Arc<Load>, demand: Demand) -> (Vec<CapacityShare>, LockError) {
        let mut shares = Vec::new();
        loop {
            match load.keep(demand) {
                Ok(share) => shares.push(share),
                Err(error) => return (shares, error),
            }
            assert!(shares.len() < 1_000_000, "there is a limit");
        }
    }

    #[test]
    fn as_many_are_admitted_as_can_be_renewed_with_time_for_another_try() {
        let load = Arc::<Load>::default();
        load.took(50 * MILLISECOND);
        let (shares, error) = fill(&load, demand(20));
        // 320 a round, 20 rounds a second, and 1.978 s for each: two thirds of the validity.
        assert_eq!(shares.len(), 12_659);
        let LockError::TooManyKept { kept, most, ttl, round } = error else { panic!("{error}") };
        assert_eq!((kept, most), (12_659, 12_659));
        assert_eq!((ttl, round), (3_000 * MILLISECOND, 50 * MILLISECOND));
        // What is given up makes room, once.
        shares[0].end();
        shares[0].end();
        let (more, _) = fill(&load, demand(20));
        assert_eq!(more.len(), 1);
        assert!(load.admit(Demand::new(60_000 * MILLISECOND, u32::MAX * MILLISECOND, 1)).is_ok());
    }

    #[test]
    fn many_threads_that_were_all_admitted_do_not_keep_more_than_that() {
        let load = Arc::<Load>::default();
        load.took(50 * MILLISECOND);
        let (mut shares, _) = fill(&load, demand(20));
        shares.drain(1..4).for_each(|share| share.end());
        let all = Barrier::new(16);
        let kept = thread::scope(|scope| {
            let try_it = || {
                load.admit(demand(20)).expect("there is room for three more");
                all.wait();
                load.keep(demand(20)).ok()
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(try_it)).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).count()
        });
        assert_eq!(kept, 3);
    }

    #[test]
    fn one_alone_is_kept_however_slow_the_nodes_were() {
        let load = Arc::<Load>::default();
        load.took(Duration::from_secs(24 * 3600));
        let share = load.keep(demand(20)).expect("there is no other");
        assert!(load.admit(demand(20)).is_err());
        share.end();
        assert!(load.admit(demand(20)).is_ok());
    }

    #[test]
    fn long_keys_and_slow_nodes_leave_room_for_fewer_and_unknown_ones_for_any() {
        let load = Arc::<Load>::default();
        assert!(load.admit(demand(1)).is_ok(), "nothing is known yet");
        load.took(50 * MILLISECOND);
        assert_eq!(fill(&load, demand(64 * 1024)).0.len(), 12_659 / 82);
        (0..100).for_each(|_| load.took(100 * MILLISECOND));
        let (shares, _) = fill(
            &Arc::new(Load {
                state: Mutex::new(State { round: load.lock().round, ..State::default() }),
            }),
            demand(20),
        );
        assert!((6_329..6_400).contains(&shares.len()), "{}", shares.len());
    }
}
