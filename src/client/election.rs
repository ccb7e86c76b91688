//! Elections of a leader: one of the candidates leads, and another one when it is gone.

use super::{LockClient, LockRequest};
use crate::cancel_token::CancelToken;
use crate::clock::{self, WallTime};
use crate::error::{Error, LockLost};
use crate::fencing::FencingToken;
use crate::guard::LockGuard;
use crate::inspect::{Holder, LockState};
use std::ops::ControlFlow;
use std::time::Duration;

/// A leader may lead as long as it lives. A lock that is kept alive ends after a day unless it is
/// told otherwise.
const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl LockClient {
    /// The election of a leader, of whom there is one at a time. Sends nothing.
    ///
    /// ```no_run
    /// # fn schedule_jobs(epoch: redlatch::FencingToken) {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let election = client.election("scheduler").name("host-17");
    /// let leadership = election.campaign()?; // waits until this one leads
    /// while leadership.is_leader() {
    ///     schedule_jobs(leadership.epoch());
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    ///
    /// It is the lock of this name, which the leader keeps alive. Candidates wait in
    /// [order](LockClient), and [`inspect`](Self::inspect) shows them.
    pub fn election(&self, name: impl AsRef<[u8]>) -> Election<'_> {
        let request = self.request(name).keep_alive().fenced().max_hold(NO_LIMIT);
        Election { request }
    }
}

/// The election of a leader: see [`LockClient::election`].
///
/// When the leader resigns, the next candidate leads a round later. When its process dies, when the
/// [ttl](Self::ttl) has passed. A leader whose process lives and whose thread hangs goes on to
/// lead, for at most [`Builder::max_hold`](crate::Builder::max_hold) if that is set.
///
/// A leader that was cut off or stopped may not know yet that another one leads: what must not be
/// done by two is given the [epoch](Leadership::epoch), and refuses a smaller one.
#[derive(Clone, Debug)]
#[must_use = "nobody is a candidate before `campaign`"]
pub struct Election<'a> {
    request: LockRequest<'a>,
}

impl Election<'_> {
    /// The candidate's name, for [`leader`](Self::leader) and [`LockClient::inspect`]: 256 bytes at
    /// most. By default the client's [`owner`](crate::Builder::owner).
    pub fn name(mut self, name: impl AsRef<[u8]>) -> Self {
        self.request = self.request.owner(name);
        self
    }

    /// For how long there is no leader after the leader's process has died, by default 10 s, as for
    /// [other locks](LockRequest::ttl). On ZooKeeper, that is the session timeout.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.request = self.request.ttl(ttl);
        self
    }

    /// As [`LockRequest::cancelled_by`]: `token` ends the wait for being elected.
    pub fn cancelled_by(mut self, token: &CancelToken) -> Self {
        self.request = self.request.cancelled_by(token);
        self
    }

    /// Waits until this candidate leads, as long as that takes, in the order of the candidates.
    ///
    /// # Errors
    ///
    /// As [`LockRequest::lock`] with [`keep_alive`](LockRequest::keep_alive).
    pub fn campaign(&self) -> Result<Leadership, Error> {
        self.request.clone().lock().map(Leadership::new)
    }

    /// The same for up to `wait`, and without waiting if that is zero. `None` if another one leads
    /// then.
    ///
    /// # Errors
    ///
    /// As [`LockRequest::try_lock_for`] with [`keep_alive`](LockRequest::keep_alive).
    pub fn campaign_for(&self, wait: Duration) -> Result<Option<Leadership>, Error> {
        Ok(self
            .request
            .clone()
            .try_lock_for(wait)?
            .map(Leadership::new))
    }

    /// Campaigns, calls `term` in this thread each time this candidate is elected, and campaigns
    /// again when that returns [`Continue`](ControlFlow::Continue), be it that it resigns or that
    /// it has found out that it leads no more. Other candidates come first then. Ends with
    /// [`Break`](ControlFlow::Break), and resigns.
    ///
    /// Errors are those of [`campaign`](Self::campaign).
    pub fn lead<T>(&self, mut term: impl FnMut(&Leadership) -> ControlFlow<T>) -> Result<T, Error> {
        loop {
            let leadership = self.campaign()?;
            if let ControlFlow::Break(value) = term(&leadership) {
                return Ok(value);
            }
        }
    }

    /// Who leads, as a majority of the nodes has it; `None` if nobody does. The leader's name is
    /// [`Holder::owner`].
    ///
    /// # Errors
    ///
    /// As [`LockClient::inspect`].
    pub fn leader(&self) -> Result<Option<Holder>, Error> {
        let key = self.request.first_key()?;
        match self.request.client.inspect_key(key)?.state {
            LockState::Held(holder) => Ok(Some(holder)),
            _ => Ok(None),
        }
    }
}

/// This candidate leads, until it resigns, until this is dropped, or until it is deposed: its lock
/// was lost, because it could not be extended in time, or an operator released it.
#[derive(Debug)]
#[must_use = "the leader resigns when this is dropped"]
pub struct Leadership {
    lock: LockGuard,
    since: WallTime,
}

impl Leadership {
    fn new(lock: LockGuard) -> Self {
        Self {
            lock,
            since: clock::wall_time(clock::wall_micros()),
        }
    }

    /// Does it still lead? Asks no node. Call it right before each step that a leader alone may
    /// take.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.ensure().is_ok()
    }

    /// The same, with the reason as an error.
    ///
    /// # Errors
    ///
    /// How the leadership was lost. It does not come back.
    pub fn ensure(&self) -> Result<(), Error> {
        self.lock.ensure_held()
    }

    /// The number of the term: larger than that of every leader before. What is changed in the
    /// leader's name checks it, as a [fencing token](FencingToken): a leader that does not know yet
    /// that it was deposed is refused.
    #[must_use]
    pub fn epoch(&self) -> FencingToken {
        self.lock.fencing_token().expect("the request is fenced")
    }

    /// When it was elected, by the wall clock of this machine.
    #[must_use]
    pub fn since(&self) -> WallTime {
        self.since
    }

    /// Calls `callback` when the leadership is lost, as [`LockGuard::on_lost`] does. Never if it
    /// resigns before.
    ///
    /// # Errors
    ///
    /// The notifier's thread could not be started.
    pub fn on_lost(&self, callback: impl FnOnce(LockLost) + Send + 'static) -> Result<(), Error> {
        self.lock.on_lost(callback)
    }

    /// The lock: for how much longer it is valid, and waiting for its loss.
    pub fn lock(&self) -> &LockGuard {
        &self.lock
    }

    /// The lock alone: whoever has it leads, and resigns by releasing it.
    pub fn into_lock(self) -> LockGuard {
        self.lock
    }

    /// Resigns, and waits for the nodes' answers. The next candidate leads a round later.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`]: the leadership was lost before, or too few nodes answered, and
    /// the lock ends with its ttl.
    pub fn resign(self) -> Result<(), Error> {
        self.lock.release()
    }
}
