//! What remembers the last run of a job, and the claim of the next one; and the register that does
//! so.

use super::last_run::{LastRun, Schedule};
use super::nodes_time::NodesTime;
use super::{OncePer, OncePerRun};
use crate::client::register::{Register, Value};
use crate::client::{LockClient, LockRequest};
use crate::clock;
use crate::engine::NodeSet;
use crate::error::{Error, OncePerError};
use crate::registers::Version;
use std::time::Duration;

/// What precedes the job's name in the name of what remembers its last run.
const PREFIX: &str = "once_per:";

/// The name of what remembers the last run of the job with this lock.
pub(super) fn memory_name(request: &LockRequest<'_>) -> Result<Vec<u8>, Error> {
    let keys = request.keys.as_ref().map_err(|error| Error::Resource(*error))?;
    let name = &keys.first[request.client.core.key_prefix.len()..];
    Ok([PREFIX.as_bytes(), name].concat())
}

/// What remembers the last run.
pub(super) trait Memory {
    /// A run that may be claimed, as long as no other client claims it.
    type Claimable;
    /// A run that is claimed, and can be given back.
    type Claim;
    /// A run that has begun.
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

    /// Forgets the last run.
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
        OncePerRun::NotDue { next: clock::wall_time(self.next), left: self.left }
    }
}

/// The register that remembers the last run, and the nodes whose clocks count.
pub(super) struct ByRegister<'a> {
    client: &'a LockClient,
    register: Register,
    schedule: Schedule,
    retries_failed: bool,
}

/// What the register had, and what it is to have next.
pub(super) struct NextRun {
    before: Option<Value>,
    next: LastRun,
}

impl<'a> ByRegister<'a> {
    pub(super) fn of(once: &OncePer<'a>) -> Result<Self, Error> {
        let OncePer { request, schedule, retries_failed, .. } = once;
        let client = request.client;
        let register = client.register(memory_name(request)?)?;
        Ok(Self { client, register, schedule: *schedule, retries_failed: *retries_failed })
    }

    /// The time by the clocks of the nodes.
    fn time(&self) -> Result<NodesTime, Error> {
        let core = &self.client.core;
        let nodes = core.rules.nodes;
        let statuses = core.examine(core.register_nodes()?, NodeSet::all(nodes));
        let now = clock::now();
        let readings = statuses.iter().filter_map(|status| status.wall_micros(now));
        let time = NodesTime::new(readings.collect(), nodes, self.schedule.doubt_max());
        Ok(time.map_err(OncePerError::Clocks)?)
    }
}

impl Memory for ByRegister<'_> {
    type Claimable = NextRun;
    type Claim = (Version, NextRun);
    type Begun = (Version, LastRun);

    fn claimable(&self) -> Result<Result<NextRun, NotDue>, Error> {
        let before = self.register.read()?;
        // Read after the value, so that it is not earlier than the time in there.
        let now = self.time()?;
        let last = before.as_ref().map(|value| LastRun::read(value.bytes())).transpose()?;
        let next = self.schedule.next(last.as_ref(), &now);
        let next = next.map(|next| next.begun(self.retries_failed));
        Ok(next.map(|next| NextRun { before, next }).map_err(|(next, left)| {
            let left = Duration::from_micros(left);
            NotDue { next, left }
        }))
    }

    fn claim(&self, run: NextRun) -> Result<Option<Self::Claim>, Error> {
        let seen = run.before.as_ref().map(Value::version);
        let claimed = self.register.compare_and_set(seen, &run.next.to_bytes())?.ok();
        Ok(claimed.map(|version| (version, run)))
    }

    fn give_back(&self, (claimed, run): Self::Claim) {
        let _ = match run.before {
            Some(value) => self.register.compare_and_set(Some(claimed), value.bytes()).map(drop),
            None => self.register.compare_and_delete(claimed).map(drop),
        };
    }

    fn begin(&self, (claimed, run): Self::Claim) -> Result<Self::Begun, Error> {
        Ok((claimed, run.next))
    }

    fn end(&self, (claimed, run): Self::Begun) -> Result<(), Error> {
        if self.retries_failed {
            let _ = self.register.compare_and_set(Some(claimed), &run.ended().to_bytes())?;
        }
        Ok(())
    }

    fn forget(&self) -> Result<(), Error> {
        Ok(self.register.delete().map(drop)?)
    }
}
