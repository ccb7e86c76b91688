//! What remembers the last run of a job, and the claim of the next one; and the register that does
//! so.

use super::{LastRun, OncePer, OncePerRun, RunSchedule, run_ttl};
use crate::client::{LockClient, LockRequest};
use crate::clock::{self, Time};
use crate::engine::{NodeSet, quorum};
use crate::error::{ClocksError, Error, OncePerError};
use crate::guard::LockGuard;
use crate::inspect::LockState;
use crate::registers::register::{Register, Value};
use redlatch_registers::Version;
use std::time::Duration;

/// What precedes the job's name in the name of what remembers its last run.
const PREFIX: &str = "once_per:";

/// The name of what remembers the last run of the job with this lock.
pub(super) fn memory_name(request: &LockRequest<'_>) -> Result<Vec<u8>, Error> {
    let name = &request.first_key()?[request.client.core.key_prefix.len()..];
    Ok([PREFIX.as_bytes(), name].concat())
}

/// What remembers the last run.
pub(super) trait RunMemory {
    /// A run that may be claimed, as long as no other client claims it.
    type Claimable;
    /// A run that is claimed, and can be given back.
    type Claim;
    type Begun;

    /// The run that may be claimed now, if the job is due.
    fn claimable(&self) -> Result<Result<Self::Claimable, NotDue>, Error>;

    /// Claims it. `None` if another client was faster.
    fn claim(&self, it: Self::Claimable) -> Result<Option<Self::Claim>, Error>;

    /// Undoes a claim under which nothing has run. If that fails, the period has no run.
    fn give_back(&self, claim: Self::Claim);

    /// From now on the run counts, unless failed ones are retried.
    fn begin(&self, claim: Self::Claim) -> Result<Self::Begun, Error>;

    /// The job has succeeded: from now on the run counts in any case.
    fn end(&self, begun: Self::Begun) -> Result<(), Error>;

    fn forget(&self) -> Result<(), Error>;

    /// What to say if another client has claimed the run: it is running, or has ended.
    fn other_run<T>(&self) -> Result<OncePerRun<T>, Error> {
        Ok(match self.claimable()? {
            Err(not_due) => not_due.into_run(),
            Ok(_) => OncePerRun::HeldByOther,
        })
    }
}

/// How long it takes until the job is due.
pub(super) struct NotDue {
    /// In microseconds since 1970.
    pub(super) next: u64,
    pub(super) left: Duration,
}

impl NotDue {
    pub(super) fn into_run<T>(self) -> OncePerRun<T> {
        OncePerRun::NotDue {
            next: clock::wall_time(self.next),
            left: self.left,
        }
    }
}

/// The register that remembers the last run, and the nodes whose clocks count.
pub(super) struct ByRegister<'a> {
    client: &'a LockClient,
    register: Register,
    schedule: RunSchedule,
    retries_failed: bool,
}

/// What the register had, and what it is to have next.
pub(super) struct NextRun {
    before: Option<Value>,
    next: LastRun,
}

impl<'a> ByRegister<'a> {
    pub(super) fn of(once: &OncePer<'a>) -> Result<Self, Error> {
        let OncePer {
            request,
            schedule,
            retries_failed,
            ..
        } = once;
        let client = request.client;
        let register = client.register(memory_name(request)?)?;
        Ok(Self {
            client,
            register,
            schedule: *schedule,
            retries_failed: *retries_failed,
        })
    }

    /// The time by the clocks of the nodes.
    fn time(&self) -> Result<NodesTime, Error> {
        let core = &self.client.core;
        let nodes = core.rules.nodes;
        let statuses = core
            .register_nodes()?
            .caller
            .quorum
            .servers(NodeSet::all(nodes));
        let now = clock::now();
        let readings = statuses.iter().filter_map(|status| status.wall_micros(now));
        let time = NodesTime::new(readings.collect(), nodes, self.schedule.doubt_max());
        Ok(time.map_err(OncePerError::Clocks)?)
    }
}

impl RunMemory for ByRegister<'_> {
    type Claimable = NextRun;
    type Claim = (Version, NextRun);
    type Begun = (Version, LastRun);

    fn claimable(&self) -> Result<Result<NextRun, NotDue>, Error> {
        let before = self.register.read()?;
        // Read after the value, so that it is not earlier than the time in there.
        let now = self.time()?;
        let last = before
            .as_ref()
            .map(|value| LastRun::read(value.bytes()))
            .transpose()?;
        Ok(match self.schedule.next(last.as_ref(), &now) {
            Ok(next) => Ok(NextRun {
                before,
                next: next.begun(self.retries_failed),
            }),
            Err((next, left)) => Err(NotDue {
                next,
                left: Duration::from_micros(left),
            }),
        })
    }

    fn claim(&self, run: NextRun) -> Result<Option<Self::Claim>, Error> {
        let seen = run.before.as_ref().map(Value::version);
        let claimed = self
            .register
            .compare_and_set(seen, &run.next.to_bytes())?
            .ok();
        Ok(claimed.map(|version| (version, run)))
    }

    fn give_back(&self, (claimed, run): Self::Claim) {
        let _ = match run.before {
            Some(value) => self
                .register
                .compare_and_set(Some(claimed), value.bytes())
                .map(drop),
            None => self.register.compare_and_delete(claimed).map(drop),
        };
    }

    fn begin(&self, (claimed, run): Self::Claim) -> Result<Self::Begun, Error> {
        Ok((claimed, run.next))
    }

    fn end(&self, (claimed, run): Self::Begun) -> Result<(), Error> {
        if self.retries_failed {
            let _ = self
                .register
                .compare_and_set(Some(claimed), &run.ended().to_bytes())?;
        }
        Ok(())
    }

    fn forget(&self) -> Result<(), Error> {
        Ok(self.register.delete().map(drop)?)
    }
}

// The lock that remembers the last run of a job, by staying taken until the next one is due.

/// The lock that remembers it, which is never held for longer than it takes to set it: its release
/// leaves it on the nodes for as long as the run counts.
pub(super) struct ByLock<'a> {
    name: Vec<u8>,
    request: LockRequest<'a>,
    counts_for: Duration,
    retries_failed: bool,
}

impl<'a> ByLock<'a> {
    pub(super) fn of(once: &OncePer<'a>) -> Result<Self, Error> {
        let OncePer {
            request,
            schedule,
            retries_failed,
            ..
        } = once;
        let name = memory_name(request)?;
        let counts_for = schedule.period.saturating_sub(schedule.tolerance);
        let owner = request.settings.owner.clone();
        let ttl = run_ttl(request, *schedule);
        // A run may count for less than the ttl that it takes to set the lock.
        let longest = counts_for.max(ttl);
        let mut request = request.client.request(&name).ttl(ttl).max_hold(longest);
        request.settings.owner = owner;
        Ok(Self {
            name,
            request,
            counts_for,
            retries_failed: *retries_failed,
        })
    }

    /// Takes the lock, which its release leaves on the nodes until this time has passed. `None` if
    /// the last run still counts.
    fn set(&self, counts_for: Duration) -> Result<Option<LockGuard>, Error> {
        self.request.clone().hold_at_least(counts_for).try_lock()
    }
}

impl RunMemory for ByLock<'_> {
    type Claimable = ();
    /// The lock, if the run is to count as soon as it begins.
    type Claim = Option<LockGuard>;
    type Begun = Time;

    fn claimable(&self) -> Result<Result<(), NotDue>, Error> {
        let seen = self.request.client.inspect(&self.name)?;
        let LockState::Held(holder) = seen.state else {
            return Ok(Ok(()));
        };
        let left = holder.remaining.unwrap_or_default();
        let micros = u64::try_from(left.as_micros()).unwrap_or(u64::MAX);
        Ok(Err(NotDue {
            next: clock::wall_micros().saturating_add(micros),
            left,
        }))
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
            self.let_expire(lock)?;
        }
        Ok(began)
    }

    fn end(&self, began: Time) -> Result<(), Error> {
        let left = self.counts_for.saturating_sub(clock::now().since(began));
        if !self.retries_failed || left.is_zero() {
            return Ok(());
        }
        self.set(left)?.map_or(Ok(()), |lock| self.let_expire(lock))
    }

    fn forget(&self) -> Result<(), Error> {
        let client = self.request.client;
        client.force_release(&client.inspect(&self.name)?).map(drop)
    }
}

impl ByLock<'_> {
    fn let_expire(&self, lock: LockGuard) -> Result<(), Error> {
        let took = lock.age(clock::now());
        let ttl = self.request.settings.ttl;
        lock.release().map_err(|error| match error {
            Error::Lost(_) => Error::TooSlow { took, ttl },
            other => other,
        })
    }
}

// The time by the clocks of the nodes, of which a minority may show anything.

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
        let answered = readings.len();
        let needed = quorum(nodes);
        if answered < needed {
            return Err(ClocksError::TooFew { answered, needed });
        }
        readings.sort_unstable();
        // This many may be wrong: beyond them, in either direction, is a right one.
        let wrong = nodes - needed;
        let earliest = readings[answered - 1 - wrong];
        let latest = readings[wrong];
        // Of an even number of nodes that all answer, the two bounds are in the other order.
        let (earliest, latest) = (earliest.min(latest), earliest.max(latest));
        let by = Duration::from_micros(latest - earliest);
        if by > doubt_max {
            Err(ClocksError::Differ { by })
        } else {
            Ok(Self { earliest, latest })
        }
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
                let readings = kinds
                    .iter()
                    .zip(RIGHT)
                    .filter_map(|(kind, right)| match kind {
                        0 => Some(right),
                        1 => Some(7),
                        2 => Some(1_000_000),
                        _ => None,
                    });
                let time = NodesTime::new(readings.collect(), nodes, Duration::MAX).unwrap();
                let right = RIGHT[..nodes].iter();
                assert!(
                    time.earliest <= *right.clone().max().unwrap(),
                    "{kinds:?} {time:?}"
                );
                assert!(
                    time.latest >= *right.clone().min().unwrap(),
                    "{kinds:?} {time:?}"
                );
                if silent == 0 {
                    let range = *right.clone().min().unwrap()..=*right.max().unwrap();
                    assert!(range.contains(&time.earliest) && range.contains(&time.latest));
                }
            }
        }
    }

    #[test]
    fn too_few_clocks_and_clocks_in_doubt_are_refused() {
        let second = Duration::from_secs(1);
        let few = ClocksError::TooFew {
            answered: 1,
            needed: 2,
        };
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
