//! The lock that remembers the last run of a job, by staying taken until the next one is due.

use super::memory::{Memory, NotDue, memory_name};
use super::{OncePer, run_ttl};
use crate::client::LockRequest;
use crate::clock::{self, Time};
use crate::error::Error;
use crate::guard::LockGuard;
use crate::inspect::LockState;
use std::time::Duration;

/// The lock that remembers it, which is never held for longer than it takes to set it: its release
/// leaves it on the nodes for as long as the run counts.
pub(super) struct ByLock<'a> {
    name: Vec<u8>,
    request: LockRequest<'a>,
    /// For how long a run counts.
    counts_for: Duration,
    retries_failed: bool,
}

impl<'a> ByLock<'a> {
    pub(super) fn of(once: &OncePer<'a>) -> Result<Self, Error> {
        let OncePer { request, schedule, retries_failed, .. } = once;
        let name = memory_name(request)?;
        let counts_for = schedule.period.saturating_sub(schedule.tolerance);
        let owner = &request.settings.owner;
        let ttl = run_ttl(request, *schedule);
        let request = request.client.request(&name).ttl(ttl).owner(owner).max_hold(counts_for);
        Ok(Self { name, request, counts_for, retries_failed: *retries_failed })
    }

    /// Takes the lock, which its release leaves on the nodes until this time has passed. `None` if
    /// the last run still counts.
    fn set(&self, counts_for: Duration) -> Result<Option<LockGuard>, Error> {
        self.request.clone().hold_at_least(counts_for).try_lock()
    }
}

impl Memory for ByLock<'_> {
    type Claimable = ();
    /// The lock, if the run is to count as soon as it begins.
    type Claim = Option<LockGuard>;
    /// When it began.
    type Begun = Time;

    fn claimable(&self) -> Result<Result<(), NotDue>, Error> {
        let seen = self.request.client.inspect(&self.name)?;
        let LockState::Held(holder) = seen.state else { return Ok(Ok(())) };
        let left = holder.remaining.unwrap_or_default();
        let micros = u64::try_from(left.as_micros()).unwrap_or(u64::MAX);
        Ok(Err(NotDue { next: clock::wall_micros().saturating_add(micros), left }))
    }

    fn claim(&self, (): ()) -> Result<Option<Self::Claim>, Error> {
        if self.retries_failed {
            // Its own lock keeps others out until the run has ended.
            return Ok(Some(None));
        }
        Ok(self.set(self.counts_for)?.map(Some))
    }

    fn give_back(&self, claim: Self::Claim) {
        if let Some(mut lock) = claim {
            lock.set_hold_at_least(Duration::ZERO);
        }
    }

    fn begin(&self, claim: Self::Claim) -> Result<Time, Error> {
        let began = clock::now();
        if let Some(lock) = claim {
            self.leave(lock)?;
        }
        Ok(began)
    }

    fn end(&self, began: Time) -> Result<(), Error> {
        let left = self.counts_for.saturating_sub(clock::now().since(began));
        if !self.retries_failed || left.is_zero() {
            return Ok(());
        }
        self.set(left)?.map_or(Ok(()), |lock| self.leave(lock))
    }

    fn forget(&self) -> Result<(), Error> {
        let client = self.request.client;
        client.force_release(&client.inspect(&self.name)?).map(drop)
    }
}

impl ByLock<'_> {
    /// Leaves the lock on the nodes.
    fn leave(&self, lock: LockGuard) -> Result<(), Error> {
        let (took, ttl) = (lock.age(clock::now()), self.request.settings.ttl);
        lock.release().map_err(|error| match error {
            Error::Lost(_) => Error::TooSlow { took, ttl },
            other => other,
        })
    }
}
