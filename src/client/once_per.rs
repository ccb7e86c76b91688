//! Jobs that run once in each period, on one of many machines.

mod by_lock;
mod last_run;
mod memory;
mod nodes_time;

use super::{LockClient, LockRequest};
use crate::clock::{self, WallTime};
use crate::engine::{Ttl, Wait};
use crate::error::{Error, OncePerError};
use crate::guard::LockGuard;
use by_lock::ByLock;
use last_run::Schedule;
use memory::{ByRegister, Memory};
use std::time::Duration;

/// For how long a call waits for the lock, besides a round: several machines that ask at the same
/// moment may all be refused without a wait, and a day would have no run.
const WAIT: Duration = Duration::from_secs(1);

/// The longest ttl of the lock that is kept alive during a run. If the process dies, no other runs
/// the job for so long.
const TTL_MAX: Duration = Duration::from_secs(5);

impl LockClient {
    /// A job that runs once in each `period`, on one of many machines. The same as
    /// [`request(name)`](Self::request)`.`[`once_per(period)`](LockRequest::once_per).
    ///
    /// ```no_run
    /// # use redlatch::{Error, LockClient, OncePerRun};
    /// # use std::time::Duration;
    /// # fn write_the_report() -> Result<u32, Error> { Ok(1) }
    /// # fn example(client: &LockClient) -> Result<(), Error> {
    /// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    ///
    /// // Called by the crontab of each machine, at 02:00 by its own clock.
    /// match client.once_per("report", DAY).run(|_lock| write_the_report())? {
    ///     OncePerRun::Ran(pages) => println!("{pages} pages"),
    ///     OncePerRun::NotDue { left, .. } => println!("due again in {left:?}"),
    ///     OncePerRun::HeldByOther => println!("another machine writes it"),
    ///     _ => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn once_per(&self, name: impl AsRef<[u8]>, period: Duration) -> OncePer<'_> {
        self.request(name).once_per(period)
    }
}

impl<'a> LockRequest<'a> {
    /// A job that runs once in each `period`, under this lock, whose ttl is at most five seconds
    /// and half of the period: see [`OncePer`].
    pub fn once_per(self, period: Duration) -> OncePer<'a> {
        let schedule = Schedule::every(period);
        OncePer { request: self, schedule, retries_failed: false, is_exact: false }
    }
}

/// A job that runs once in each period, on one of many machines: see [`LockClient::once_per`].
///
/// **What remembers the last run.** A lock of its own, which stays taken for the period less the
/// [`tolerance`](Self::tolerance), whether the process lives or not. It needs nothing but nodes,
/// and holds until a majority of those that have it forget it: an empty restart of one of three
/// changes nothing, one of two of them, or of a single server that keeps nothing, lets the job run
/// again. With [`exact`](Self::exact), a [register](LockClient::register).
///
/// **At most once.** A run is claimed there before the job begins. So it is not begun twice in a
/// period, also if the lock of the run was lost. That lock is held beside it, so that a run that
/// takes longer than the period is not joined by the next one. It is kept alive, with the ttl of
/// the request, and at most five seconds and half of the period, or what [can be kept
/// alive](crate::error::TtlError::TooShortToKeep) if that is longer: so soon after a process was
/// killed, another one can run the job.
///
/// **Whose clock.** That of the nodes; the clocks of the machines that run the job do not matter.
///
/// **When it is due.** A period after the last run began, and a [`tolerance`](Self::tolerance)
/// earlier; the time of the day does not matter. Of a job that was never run, at once.
///
/// **What counts as a run.** What has begun, also if it failed or its process died, unless
/// [`retry_failed`](Self::retry_failed) is set.
///
/// What remembers the run is named `once_per:` and the lock's name; of several resources, that of
/// the first. To have the job run again before its time, [forget](Self::forget) it, or remove that:
/// `redlatch release --force once_per:report`, or, with [`exact`](Self::exact), `redlatch registers
/// delete once_per:report`.
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `run`"]
pub struct OncePer<'a> {
    request: LockRequest<'a>,
    schedule: Schedule,
    retries_failed: bool,
    is_exact: bool,
}

/// What [`OncePer::run`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the job may not have run"]
#[non_exhaustive]
pub enum OncePerRun<T> {
    /// The job ran here, and returned this.
    Ran(T),
    /// It has run already.
    #[non_exhaustive]
    NotDue {
        /// When it is due again: by the nodes' clocks with [`exact`](OncePer::exact), without it by
        /// this machine's.
        next: WallTime,
        /// How long that is from now.
        left: Duration,
    },
    /// Another client or thread holds the lock: it is running the job.
    HeldByOther,
}

impl<T> OncePerRun<T> {
    /// What the job returned, if it ran here.
    pub fn ran(self) -> Option<T> {
        match self {
            Self::Ran(value) => Some(value),
            _ => None,
        }
    }
}

impl OncePer<'_> {
    /// How much earlier than a period after the last run the next one may begin. By default a tenth
    /// of the period, as schedulers do not call at exactly the same moment each time: a call that
    /// comes 10 ms earlier than yesterday's would find the job not due, and today would have no
    /// run.
    ///
    /// With zero, two runs are never less than a period apart. With [`exact`](Self::exact), what
    /// begins early does not move the next run: `n` runs take at least `n - 1` periods, less one
    /// tolerance (the generic cell rate algorithm, of ATM networks).
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.schedule.tolerance = tolerance;
        self
    }

    /// A run that fails does not count: if the job returns an error, or its process or its nodes
    /// die before its end has been noted, the next call runs it again, also in the same period.
    /// Then the job must be one that may run twice. Without this, a failed run counts, as for
    /// ShedLock, and the next one is a period later.
    ///
    /// Who runs the job decides; calls with and without it may be mixed.
    pub fn retry_failed(mut self) -> Self {
        self.retries_failed = true;
        self
    }

    /// Remembers the last run in a [register](LockClient::register), which a majority of the nodes
    /// agrees on: no run is forgotten, whatever a minority of them forgets, and nodes that have
    /// forgotten do not count. For jobs that must not run twice. The nodes must have been made a
    /// group by [`Registers::form`](crate::register::Registers::form), and keep what they answer.
    ///
    /// The period is measured by the clocks of the nodes, asked by `TIME`. As long as a majority of
    /// them is right, it does not matter what the others show. Periods are shorter or longer by as
    /// much as the right ones differ.
    ///
    /// All callers of a job must agree about it: with and without it, they do not see each other's
    /// runs.
    pub fn exact(mut self) -> Self {
        self.is_exact = true;
        self
    }

    /// Runs `job` if it is due and nobody else is running it. Otherwise says why not.
    ///
    /// If it is not due, that takes a round, with [`exact`](Self::exact) two, and no lock. If it
    /// is, the lock is waited for for a second at most, and the job runs after about five rounds,
    /// or eight. The guard is that of [`with_lock`](LockRequest::with_lock).
    ///
    /// # Errors
    ///
    /// The error of `job`. Or, converted, an [`Error`]: [`Error::OncePer`] for what only such a job
    /// has, [`Error::Lost`] if the lock was lost before the job ended. Among others, with
    /// [`exact`](Self::exact): the nodes are [no group](crate::RegisterError::NotFormed) that keeps
    /// registers, or a ZooKeeper ensemble has the locks, which has [no
    /// registers](crate::RegisterError::ZooKeeper). Without it, on ZooKeeper: the period is
    /// [longer](crate::error::TtlError::HoldTooLong) than half of the session timeout.
    ///
    /// If it is not known whether the run was claimed, because too few nodes have answered
    /// ([`NoQuorum`](crate::Error::NoQuorum), or a register's error that [may have
    /// happened](crate::RegisterError::may_have_happened)), the job has not run, and this period
    /// may be without a run; with [`retry_failed`](Self::retry_failed), the next call runs it.
    pub fn run<T, E: From<Error>>(
        self,
        job: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<OncePerRun<T>, E> {
        self.schedule.check().map_err(Error::from)?;
        if self.is_exact {
            self.run_with(&ByRegister::of(&self)?, job)
        } else {
            self.run_with(&ByLock::of(&self)?, job)
        }
    }

    /// Forgets the last run: the job is due at once. What runs now is not stopped.
    ///
    /// For a person who wants the job to run again before its time, and within a job that finds
    /// that it cannot begin.
    ///
    /// # Errors
    ///
    /// What remembers the run could not be read or removed.
    pub fn forget(&self) -> Result<(), Error> {
        if self.is_exact { ByRegister::of(self)?.forget() } else { ByLock::of(self)?.forget() }
    }

    fn run_with<T, E: From<Error>>(
        &self,
        memory: &impl Memory,
        job: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<OncePerRun<T>, E> {
        if let Err(not_due) = memory.claimable()? {
            return Ok(not_due.into_run());
        }
        let ttl = run_ttl(&self.request, self.schedule);
        let wait = self.request.client.core.rules.node_timeout.saturating_add(WAIT);
        let under_lock = |lock: &LockGuard| -> Result<OncePerRun<T>, E> {
            // Again: for how long the lock was waited for, or this process stopped, must not make
            // the period shorter.
            let claimable = match memory.claimable()? {
                Ok(claimable) => claimable,
                Err(not_due) => return Ok(not_due.into_run()),
            };
            let Some(claim) = memory.claim(claimable)? else {
                return Ok(memory.other_run()?);
            };
            if lock.ensure_held().is_err() {
                memory.give_back(claim);
                return Err(Error::TooSlow { took: lock.age(clock::now()), ttl }.into());
            }
            let begun = memory.begin(claim)?;
            let value = job(lock)?;
            // If another one has begun meanwhile, the lock was lost, and the guard says so.
            let recorded = memory.end(begun);
            recorded.map_err(|error| Error::from(OncePerError::NotRecorded(Box::new(error))))?;
            Ok(OncePerRun::Ran(value))
        };
        let wait = Wait::Until(clock::now().after(wait));
        let ran =
            self.request.clone().ttl(ttl).run_body(wait, under_lock, |lost, run| match run {
                OncePerRun::Ran(_) => Err(Error::from(lost).into()),
                other => Ok(other),
            })?;
        Ok(ran.unwrap_or(OncePerRun::HeldByOther))
    }
}

/// The ttl of the lock during a run: that of the request, but no longer than others may have to
/// wait for a process that was killed. A shorter one than the request's must suffice to be kept
/// alive, and for the least validity.
fn run_ttl(request: &LockRequest<'_>, schedule: Schedule) -> Duration {
    let (rules, settings) = (&request.client.core.rules, &request.settings);
    let validity = settings.min_validity.unwrap_or(rules.min_validity);
    let validity = validity.max(rules.node_timeout.saturating_mul(3));
    let shortest = rules.drift.shortest_ttl(validity).map_or(Duration::MAX, Ttl::as_duration);
    settings.ttl.min(TTL_MAX.min(schedule.period / 2).max(shortest))
}
