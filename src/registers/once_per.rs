//! Jobs that run once in each period, on one of many machines.

mod memory;

use crate::client::{LockClient, LockRequest};
use crate::clock::{self, WallTime};
use crate::engine::{Ttl, Wait};
use crate::error::{Error, OncePerError, RegisterError};
use crate::guard::LockGuard;
use memory::ByLock;
use memory::NodesTime;
use memory::{ByRegister, RunMemory};
use std::str;
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
    /// # use redlatch::{Error, OncePerRun};
    /// # use std::time::Duration;
    /// # fn write_the_report() -> Result<u32, Error> { Ok(1) }
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    ///
    /// // Called by the crontab of each machine, at 02:00 by its own clock.
    /// match client.once_per("report", DAY).run(|_lock| write_the_report())? {
    ///     OncePerRun::Ran(pages) => println!("{pages} pages"),
    ///     OncePerRun::NotDue { left, .. } => println!("due again in {left:?}"),
    ///     OncePerRun::HeldByOther => println!("another machine writes it"),
    ///     _ => {}
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    pub fn once_per(&self, name: impl AsRef<[u8]>, period: Duration) -> OncePer<'_> {
        self.request(name).once_per(period)
    }
}

impl<'a> LockRequest<'a> {
    /// A job that runs once in each `period`, under this lock, whose ttl is at most five seconds
    /// and half of the period: see [`OncePer`].
    pub fn once_per(self, period: Duration) -> OncePer<'a> {
        let schedule = RunSchedule::every(period);
        OncePer {
            request: self,
            schedule,
            retries_failed: false,
            is_exact: false,
        }
    }
}

/// A job that runs once in each period, on one of many machines: see [`LockClient::once_per`].
///
/// **What remembers the last run.** A lock of its own, which stays taken for the period less the
/// [`tolerance`](Self::tolerance), whether the process lives or not. It holds until a majority of
/// those that have it forget it: an empty restart of one of three changes nothing, one of two of
/// them, of a single server that keeps nothing, or a failover of a single [replicated
/// group](crate::guide::groups) that loses it, lets the job run again. With
/// [`exact`](Self::exact), a [register](LockClient::register). Its name is `once_per:` and the
/// lock's name; of several resources, that of the first.
///
/// **At most once.** A run is claimed there before the job begins. So it is not begun twice in a
/// period, also if the lock of the run was lost. That lock is held beside it, so that a run that
/// takes longer than the period is not joined by the next one. It is kept alive, with the ttl of
/// the request, and at most five seconds and half of the period, or what [can be kept
/// alive](crate::error::TtlError::TooShortToKeep) if that is longer: so soon after a process was
/// killed, another one can run the job.
///
/// **When it is due.** A period after the last run began, by the clocks of the nodes, and a
/// [`tolerance`](Self::tolerance) earlier; the time of the day does not matter. Of a job that was
/// never run, at once. What has begun is a run, also if it failed or its process died, unless
/// [`retry_failed`](Self::retry_failed) is set.
#[derive(Clone, Debug)]
#[must_use = "nothing runs before `run`"]
pub struct OncePer<'a> {
    request: LockRequest<'a>,
    schedule: RunSchedule,
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
    /// is, the lock is awaited for a second at most, and the job runs after about five rounds,
    /// or eight. The guard is that of [`with_lock`](LockRequest::with_lock).
    ///
    /// # Errors
    ///
    /// The error of `job`. Or, converted, an [`Error`]: [`Error::OncePer`] for what only such a job
    /// has, [`Error::Lost`] if the lock was lost before the job ended. Among others, with
    /// [`exact`](Self::exact): the nodes are [no group](crate::RegisterError::NotFormed) that keeps
    /// registers, or there are none on them: on a [replicated
    /// group](crate::RegisterError::Replicated) and on
    /// [ZooKeeper](crate::RegisterError::ZooKeeper). Without it, on ZooKeeper: the period is
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

    /// Forgets the last run: the job is due at once. What runs now is not stopped. For a person who
    /// wants the job to run again before its time (`redlatch release --force once_per:report`, or,
    /// with [`exact`](Self::exact), `redlatch registers delete once_per:report`), and within a job
    /// that finds that it cannot begin.
    ///
    /// # Errors
    ///
    /// What remembers the run could not be read or removed.
    pub fn forget(&self) -> Result<(), Error> {
        if self.is_exact {
            ByRegister::of(self)?.forget()
        } else {
            ByLock::of(self)?.forget()
        }
    }

    fn run_with<T, E: From<Error>>(
        &self,
        memory: &impl RunMemory,
        job: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<OncePerRun<T>, E> {
        if let Err(not_due) = memory.claimable()? {
            return Ok(not_due.into_run());
        }
        let ttl = run_ttl(&self.request, self.schedule);
        let node_timeout = self.request.client.core.rules.node_timeout;
        let wait = Wait::Until(clock::now().after(node_timeout.saturating_add(WAIT)));
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
                return Err(Error::TooSlow {
                    took: lock.age(clock::now()),
                    ttl,
                }
                .into());
            }
            let begun = memory.begin(claim)?;
            let value = job(lock)?;
            // If another one has begun meanwhile, the lock was lost, and the guard says so.
            let recorded = memory.end(begun);
            recorded.map_err(|error| Error::from(OncePerError::NotRecorded(Box::new(error))))?;
            Ok(OncePerRun::Ran(value))
        };
        let ran =
            self.request
                .clone()
                .ttl(ttl)
                .run_body(wait, under_lock, |lost, run| match run {
                    OncePerRun::Ran(_) => Err(Error::from(lost).into()),
                    other => Ok(other),
                })?;
        Ok(ran.unwrap_or(OncePerRun::HeldByOther))
    }
}

/// The ttl of the lock during a run: that of the request, but no longer than others may have to
/// wait for a process that was killed. A shorter one than the request's must suffice to be kept
/// alive, and for the least validity.
fn run_ttl(request: &LockRequest<'_>, schedule: RunSchedule) -> Duration {
    let rules = &request.client.core.rules;
    let settings = &request.settings;
    let least = settings.min_validity.unwrap_or(rules.min_validity);
    let kept_alive = rules.node_timeout.saturating_mul(3);
    let shortest = rules
        .drift
        .shortest_ttl(least.max(kept_alive))
        .map_or(Duration::MAX, Ttl::as_duration);
    settings
        .ttl
        .min(TTL_MAX.min(schedule.period / 2).max(shortest))
}

// What is remembered of the last run of a job, and when the next one is due.

/// The format of the value, as text: what it is, the number of the format, since when the period
/// counts in microseconds since 1970, and whether the run counts.
const FORMAT: (&str, &str) = ("once_per", "1");
const COUNTS: &str = "counts";
const OPEN: &str = "open";

#[derive(Clone, Debug, PartialEq, Eq)]
struct LastRun {
    /// Since when the period counts: not earlier than the run began, and later if it began early.
    counted_from: u64,
    /// It does not count unless its end is noted.
    is_open: bool,
}

impl LastRun {
    fn begun(self, is_open: bool) -> Self {
        Self { is_open, ..self }
    }

    fn ended(self) -> Self {
        Self {
            is_open: false,
            ..self
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (name, format) = FORMAT;
        let state = if self.is_open { OPEN } else { COUNTS };
        format!("{name} {format} {} {state}", self.counted_from).into_bytes()
    }

    fn read(bytes: &[u8]) -> Result<Self, RegisterError> {
        let words: Vec<&str> = str::from_utf8(bytes)
            .unwrap_or_default()
            .split(' ')
            .collect();
        let (name, format) = FORMAT;
        let read = match words[..] {
            [one, other, micros, state] if (one, other) == (name, format) => {
                let is_open = state == OPEN;
                let counted_from = micros.parse().ok().filter(|_| is_open || state == COUNTS);
                counted_from.map(|counted_from| Self {
                    counted_from,
                    is_open,
                })
            }
            _ => None,
        };
        read.ok_or_else(|| RegisterError::OtherFormat {
            url: None,
            format: match words[..] {
                [first, format, ..] if first == name => {
                    format.parse().ok().filter(|format| *format > 1)
                }
                _ => None,
            },
        })
    }
}

/// Part of the period: the tolerance, unless it is set, and the most doubt about the time.
const TOLERANCE_PART: u32 = 10;

#[derive(Clone, Copy, Debug)]
struct RunSchedule {
    period: Duration,
    /// How much earlier a run may begin.
    tolerance: Duration,
}

impl RunSchedule {
    fn every(period: Duration) -> Self {
        Self {
            period,
            tolerance: period / TOLERANCE_PART,
        }
    }

    fn doubt_max(self) -> Duration {
        self.period / TOLERANCE_PART
    }

    fn check(self) -> Result<(), OncePerError> {
        let Self { period, tolerance } = self;
        if tolerance < period {
            Ok(())
        } else {
            Err(OncePerError::Period { period, tolerance })
        }
    }

    /// The next run, if it may begin now; or else when it may, and how long that is from now.
    fn next(self, last: Option<&LastRun>, now: &NodesTime) -> Result<LastRun, (u64, u64)> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let Some(last) = last else {
            return Ok(LastRun {
                counted_from: now.latest,
                is_open: false,
            });
        };
        let due = last.counted_from.saturating_add(micros(self.period));
        let earliest = due.saturating_sub(micros(self.tolerance));
        if now.earliest >= earliest {
            // One that begins early does not move the next one.
            Ok(LastRun {
                counted_from: due.max(now.latest),
                is_open: false,
            })
        } else if last.is_open {
            Ok(last.clone())
        } else {
            Err((earliest, earliest - now.earliest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000;
    const SCHEDULE: RunSchedule = RunSchedule {
        period: Duration::from_micros(DAY),
        tolerance: Duration::from_micros(DAY / 10),
    };

    fn at(micros: u64) -> NodesTime {
        NodesTime {
            earliest: micros,
            latest: micros,
        }
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for is_open in [false, true] {
            let run = LastRun {
                counted_from: 1_764_032_063_000_000,
                is_open,
            };
            assert_eq!(LastRun::read(&run.to_bytes()), Ok(run));
        }
        let run = LastRun {
            counted_from: 7,
            is_open: true,
        };
        assert_eq!(run.to_bytes(), b"once_per 1 7 open");
        assert_eq!(run.ended().to_bytes(), b"once_per 1 7 counts");
    }

    #[test]
    fn anything_else_is_refused_and_a_later_format_is_named() {
        for text in [
            "",
            "once_per",
            "once_per 1 7",
            "once_per 1 7 open ",
            "x 2 7",
            "once_per 1 x open",
            "once_per 1 7 shut",
            "once_per 0 7 open",
            "\u{e9}",
        ] {
            let error = RegisterError::OtherFormat {
                url: None,
                format: None,
            };
            assert_eq!(LastRun::read(text.as_bytes()), Err(error), "{text}");
        }
        let later = Err(RegisterError::OtherFormat {
            url: None,
            format: Some(2),
        });
        assert_eq!(LastRun::read(b"once_per 2 anything"), later);
    }

    #[test]
    fn calls_that_come_a_little_early_each_day_run_each_day_and_others_between_do_not() {
        let mut last = SCHEDULE.next(None, &at(100 * DAY)).unwrap();
        for day in 101..200 {
            let minute = DAY / 1440;
            // Two machines call: one by a clock that is five minutes ahead.
            let early = day * DAY - 5 * minute - day % 7;
            last = SCHEDULE.next(Some(&last), &at(early)).unwrap();
            let (next, left) = SCHEDULE.next(Some(&last), &at(day * DAY)).unwrap_err();
            assert_eq!(next, day * DAY + left);
        }
    }

    #[test]
    fn runs_take_as_many_periods_less_one_tolerance_whenever_it_is_called() {
        let mut random = 7_u64;
        for _ in 0..200 {
            let mut now = DAY;
            let mut last = None;
            let mut begun = Vec::new();
            while begun.len() < 30 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                now += (random >> 33) % (DAY / 3);
                if let Ok(run) = SCHEDULE.next(last.as_ref(), &at(now)) {
                    last = Some(run);
                    begun.push(now);
                }
            }
            for (first, from) in begun.iter().enumerate() {
                for (runs, to) in begun[first..].iter().enumerate() {
                    let runs = u64::try_from(runs).unwrap();
                    assert!(to - from + DAY / 10 >= runs * DAY, "{begun:?}");
                }
            }
        }
    }

    #[test]
    fn an_open_run_is_tried_again_at_once_and_its_period_counts_from_the_first_try() {
        let first = SCHEDULE.next(None, &at(DAY)).unwrap().begun(true);
        let second = SCHEDULE.next(Some(&first), &at(DAY + 5)).unwrap();
        assert_eq!(second, first);
        // Many periods later it is a run of its own.
        let late = SCHEDULE.next(Some(&first), &at(9 * DAY)).unwrap();
        assert_eq!(
            late,
            LastRun {
                counted_from: 9 * DAY,
                is_open: false
            }
        );
        assert!(SCHEDULE.next(Some(&second.ended()), &at(DAY + 6)).is_err());
    }

    #[test]
    fn doubt_about_the_time_makes_a_period_longer_and_never_shorter() {
        let exact = RunSchedule {
            tolerance: Duration::ZERO,
            ..SCHEDULE
        };
        let first = exact
            .next(
                None,
                &NodesTime {
                    earliest: 0,
                    latest: 100,
                },
            )
            .unwrap();
        let doubtful = NodesTime {
            earliest: DAY + 99,
            latest: DAY + 200,
        };
        assert!(exact.next(Some(&first), &doubtful).is_err());
        assert!(exact.next(Some(&first), &at(DAY + 100)).is_ok());
    }
}
