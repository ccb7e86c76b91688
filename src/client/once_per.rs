//! Jobs that run once in each period, on one of many machines.

mod last_run;
mod memory;
mod nodes_time;

use super::{LockClient, LockRequest};
use crate::clock::{self, WallTime};
use crate::engine::Wait;
use crate::error::{Error, OncePerError, RegisterError, WithLockError};
use crate::guard::LockGuard;
use last_run::Schedule;
use memory::Memory;
use std::time::Duration;

/// For how long a call waits for the lock, besides a round: several machines that ask at the same
/// moment may all be refused without a wait, and a day would have no run.
const WAIT: Duration = Duration::from_secs(1);

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
    /// A job that runs once in each `period`, under this lock. Its last run is remembered in a
    /// [register](LockClient::register), so the nodes must have been made a group by
    /// [`form_registers`](LockClient::form_registers).
    pub fn once_per(self, period: Duration) -> OncePer<'a> {
        OncePer { request: self, schedule: Schedule::every(period), retries_failed: false }
    }
}

/// A job that runs once in each period, on one of many machines: see [`LockClient::once_per`].
///
/// **At most once.** A run is claimed in a register, which a majority agrees on, before the job
/// begins. So it is not begun twice in a period, also if the lock was lost, if a minority of the
/// nodes forgot everything, and whatever [`max_ttl`](crate::Builder::max_ttl) is. The lock is held
/// beside that, kept alive, so that a run that takes longer than the period is not joined by the
/// next one.
///
/// **Whose clock.** That of the nodes, asked by `TIME`; the clocks of the machines that run the job
/// do not matter. As long as a majority of the nodes has right clocks, it does not matter what the
/// others show. Periods are shorter or longer by as much as the right ones differ.
///
/// **When it is due.** A period after the last run began, and a [`tolerance`](Self::tolerance)
/// earlier; the time of the day does not matter. Of a job that was never run, at once.
///
/// **What counts as a run.** What has begun, also if it failed or its process died, unless
/// [`retry_failed`](Self::retry_failed) is set.
///
/// The register is named `once_per:` and the lock's name; of several resources, that of the first.
/// To have the job run again before its time, delete it: `redlatch registers delete
/// once_per:report`.
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `run`"]
pub struct OncePer<'a> {
    request: LockRequest<'a>,
    schedule: Schedule,
    retries_failed: bool,
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
        /// When it is due again, by the nodes' clocks.
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
    /// What begins early does not move the next run: `n` runs take at least `n - 1` periods, less
    /// one tolerance (the generic cell rate algorithm, of ATM networks). With zero, two runs are
    /// never less than a period apart.
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

    /// Runs `job` if it is due and nobody else is running it. Otherwise says why not.
    ///
    /// If it is not due, that takes two rounds, and no lock. If it is, the lock is waited for
    /// for a second at most, and the job runs after about eight rounds. The guard is that of
    /// [`with_lock`](LockRequest::with_lock).
    ///
    /// # Errors
    ///
    /// The error of `job`. Or, converted, an [`OncePerError`]: among others, the nodes are
    /// [no group](RegisterError::NotFormed) that keeps registers, or a ZooKeeper ensemble has the
    /// locks, which has [no registers](RegisterError::ZooKeeper).
    ///
    /// If claiming the run has failed so that it [may have
    /// happened](RegisterError::may_have_happened), the job has not run, and this period may be
    /// without a run; with [`retry_failed`](Self::retry_failed), the next call runs it.
    pub fn run<T, E: From<OncePerError<T>>>(
        self,
        job: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<OncePerRun<T>, E> {
        let Self { request, schedule, retries_failed } = self;
        let ask = || -> Result<_, OncePerError<T>> {
            schedule.check()?;
            let memory = Memory::of(&request)?;
            Ok((memory.claimable(schedule)?, memory))
        };
        let (claimable, memory) = ask()?;
        if let Err(not_due) = claimable {
            return Ok(not_due.into_run());
        }
        let ttl = request.settings.ttl;
        let wait = request.client.core.rules.node_timeout.saturating_add(WAIT);
        let ran = request.run(Wait::Until(clock::now().after(wait)), |lock| {
            // Again: for how long the lock was waited for, or this process stopped, must not make
            // the period shorter.
            let claimable = match memory.claimable(schedule).map_err(Failure::Own)? {
                Ok(claimable) => claimable,
                Err(not_due) => return Ok(not_due.into_run()),
            };
            let run = claimable.next.clone().begun(retries_failed);
            let Some(version) = memory.claim(&claimable, &run)? else {
                return memory.other_run(schedule).map_err(Failure::Own);
            };
            if lock.ensure_held().is_err() {
                memory.give_back(version, claimable.before.as_ref());
                let error = Error::TooSlow { took: lock.age(clock::now()), ttl };
                return Err(Failure::Own(error.into()));
            }
            let value = job(lock).map_err(Failure::Job)?;
            if !retries_failed {
                return Ok(OncePerRun::Ran(value));
            }
            match memory.register.compare_and_set(Some(version), &run.ended().to_bytes()) {
                // If another one has begun meanwhile, the lock was lost, and the guard says so.
                Ok(_) => Ok(OncePerRun::Ran(value)),
                Err(error) => Err(Failure::Own(OncePerError::NotRecorded { error, value })),
            }
        });
        match ran {
            Ok(Some(run)) => Ok(run),
            Ok(None) => Ok(OncePerRun::HeldByOther),
            Err(Failure::Job(error)) => Err(error),
            Err(Failure::Own(error)) => Err(error.into()),
            Err(Failure::Lock(WithLockError::NotAcquired(error))) => {
                Err(OncePerError::NotAcquired(error).into())
            }
            Err(Failure::Lock(WithLockError::LostDuring { lost, value })) => match value {
                OncePerRun::Ran(value) => Err(OncePerError::LostDuring { lost, value }.into()),
                other => Ok(other),
            },
        }
    }
}

/// How a run under the lock failed.
enum Failure<T, E> {
    Lock(WithLockError<OncePerRun<T>>),
    Own(OncePerError<T>),
    Job(E),
}

impl<T, E> From<WithLockError<OncePerRun<T>>> for Failure<T, E> {
    fn from(error: WithLockError<OncePerRun<T>>) -> Self {
        Self::Lock(error)
    }
}

impl<T, E> From<RegisterError> for Failure<T, E> {
    fn from(error: RegisterError) -> Self {
        Self::Own(OncePerError::Register(error))
    }
}
