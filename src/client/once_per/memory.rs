//! The register that remembers the last run of a job, and the claim of the next one.

use super::OncePerRun;
use super::last_run::{LastRun, Schedule};
use super::nodes_time::NodesTime;
use crate::client::register::{Register, Value};
use crate::client::{LockClient, LockRequest};
use crate::clock;
use crate::engine::NodeSet;
use crate::engine::register::Version;
use crate::error::{OncePerError, RegisterError};
use std::time::Duration;

/// What precedes the job's name in the name of the register that remembers its last run.
const REGISTER: &str = "once_per:";

/// A run that may be claimed, as long as the register has the value that was seen.
pub(super) struct Claimable {
    pub(super) before: Option<Value>,
    pub(super) next: LastRun,
}

/// How long it takes until the job is due.
pub(super) struct NotDue {
    next: u64,
    left: Duration,
}

impl NotDue {
    pub(super) fn into_run<T>(self) -> OncePerRun<T> {
        OncePerRun::NotDue { next: clock::wall_time(self.next), left: self.left }
    }
}

/// The register that remembers the last run, and the nodes whose clocks count.
pub(super) struct Memory<'a> {
    client: &'a LockClient,
    pub(super) register: Register,
}

impl<'a> Memory<'a> {
    pub(super) fn of(request: &LockRequest<'a>) -> Result<Self, RegisterError> {
        let client = request.client;
        let keys = request.keys.as_ref().map_err(|error| RegisterError::Resource(*error))?;
        let name = &keys.first[client.core.key_prefix.len()..];
        let register = client.register([REGISTER.as_bytes(), name].concat())?;
        Ok(Self { client, register })
    }

    /// The run that may be claimed now, if the job is due.
    pub(super) fn claimable<T>(
        &self,
        schedule: Schedule,
    ) -> Result<Result<Claimable, NotDue>, OncePerError<T>> {
        let before = self.register.read()?;
        // Read after the value, so that it is not earlier than the time in there.
        let now = self.time(schedule)?;
        let last = before.as_ref().map(|value| LastRun::read(value.bytes())).transpose()?;
        let next = schedule.next(last.as_ref(), &now);
        Ok(next.map(|next| Claimable { before, next }).map_err(|(next, left)| {
            let left = Duration::from_micros(left);
            NotDue { next, left }
        }))
    }

    /// What to say if another client has claimed the run: it is running, or has ended.
    pub(super) fn other_run<T>(
        &self,
        schedule: Schedule,
    ) -> Result<OncePerRun<T>, OncePerError<T>> {
        Ok(match self.claimable(schedule)? {
            Err(not_due) => not_due.into_run(),
            Ok(_) => OncePerRun::HeldByOther,
        })
    }

    /// Claims it. `None` if another client was faster.
    pub(super) fn claim(
        &self,
        claimable: &Claimable,
        run: &LastRun,
    ) -> Result<Option<Version>, RegisterError> {
        let seen = claimable.before.as_ref().map(Value::version);
        Ok(self.register.compare_and_set(seen, &run.to_bytes())?.ok())
    }

    /// Undoes a claim under which nothing has run. If that fails, the period has no run.
    pub(super) fn give_back(&self, claimed: Version, before: Option<&Value>) {
        let _ = match before {
            Some(value) => self.register.compare_and_set(Some(claimed), value.bytes()).map(drop),
            None => self.register.compare_and_delete(claimed).map(drop),
        };
    }

    /// The time by the clocks of the nodes.
    fn time<T>(&self, schedule: Schedule) -> Result<NodesTime, OncePerError<T>> {
        let core = &self.client.core;
        let nodes = core.rules.nodes;
        let statuses = core.examine(core.register_nodes()?, NodeSet::all(nodes));
        let now = clock::now();
        let readings = statuses.iter().filter_map(|status| status.wall_micros(now));
        Ok(NodesTime::new(readings.collect(), nodes, schedule.doubt_max())?)
    }
}
