//! Locks that are kept alive.

use super::request::Terms;
use super::{LockClient, LockRequest, draw};
use crate::clock;
use crate::engine::{Lease, Ttl};
use crate::error::{LockError, SpawnError, TtlError};
use crate::event::Event;
use crate::guard::LockGuard;
use crate::name::Name;
use crate::wait_queue::QueueHead;
use crate::watchdog::{Demand, KeptLock, MAX_HOLD, Plan, SharedLease, period, shortest_ttl};
use std::sync::Arc;
use std::time::Duration;

impl LockClient {
    /// Runs `body` with the lock of `resource` held, which is waited for as long as it takes and
    /// kept alive with `ttl` until `body` has ended: short for a
    /// [request](Self::request) that is [run](LockRequest::run).
    ///
    /// What `body` returns is handed out whatever becomes of the lock meanwhile, an error of its
    /// own included, and if it panics the lock is given back and the panic goes on. A lease ends by
    /// the clock all the same, when the nodes cannot be reached for too long: call
    /// [`ensure_held`](LockGuard::ensure_held) on what `body` is given in the line before the one
    /// that must not run twice.
    ///
    /// The lock is not re-entrant: a `body` that waits for the same lock is told
    /// [`LockError::HeldByThisThread`], and `try_lock` in it says `None`.
    ///
    /// ```no_run
    /// # use redlatch::LockClient;
    /// # use std::time::Duration;
    /// # fn orders() -> Vec<u32> { Vec::new() }
    /// # fn send(order: u32) {}
    /// # fn example(client: &LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// client.with_lock("outbox", Duration::from_secs(10), |held| {
    ///     for order in orders() {
    ///         held.ensure_held()?;
    ///         send(order);
    ///     }
    ///     Ok::<(), redlatch::LockLost>(())
    /// })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), as a request that is [kept alive](LockRequest::keep_alive),
    /// or [`LockError::TooSlow`] if the process stood still between taking the lock and `body`
    /// until the lock was over. `body` was not called then.
    pub fn with_lock<T>(
        &self,
        resource: impl AsRef<[u8]>,
        ttl: Duration,
        body: impl FnOnce(&LockGuard) -> T,
    ) -> Result<T, LockError> {
        let value = self.request(resource).ttl(ttl).wait_forever().run(body)?;
        Ok(value.expect("a request that waits for ever does not end with others' lock"))
    }

    /// Checks what is asked for about keeping the lock of these keys alive, and starts the
    /// watchdog, before anything is sent.
    pub(super) fn prepare_keeping(
        &self,
        terms: &Terms,
        ttl: Ttl,
        key_bytes: usize,
    ) -> Result<(), LockError> {
        if !terms.keep_alive {
            return Ok(());
        }
        let whole = ttl.as_duration();
        let shortest = shortest_ttl(self.rules()).map_or(Duration::MAX, Ttl::as_duration);
        if whole < shortest {
            let error = TtlError::TooShortToKeep { ttl: terms.ttl, shortest };
            return Err(LockError::Ttl(error));
        }
        let max_hold = self.max_hold(terms.max_hold).unwrap_or(MAX_HOLD);
        if whole > max_hold {
            return Err(LockError::Ttl(TtlError::BeyondHold { ttl: terms.ttl, max_hold }));
        }
        self.shared.watchdog.load().admit(self.demand(ttl, key_bytes))?;
        self.shared.watchdog.start().map_err(LockError::Spawn)
    }

    /// What keeping such a lock alive takes.
    fn demand(&self, ttl: Ttl, key_bytes: usize) -> Demand {
        Demand::new(ttl.as_duration(), period(self.rules(), ttl), key_bytes)
    }

    /// For how long extensions may keep a lock: what was asked for, or what the settings say if
    /// that is less.
    pub(super) fn max_hold(&self, asked: Option<Duration>) -> Option<Duration> {
        [asked, self.rules().hold_max].into_iter().flatten().min()
    }

    /// The guard of a lock that was granted, kept alive if that was asked for.
    pub(super) fn guard(
        &self,
        lease: Lease,
        place: Option<QueueHead>,
        terms: &Terms,
    ) -> Result<LockGuard, LockError> {
        let max_hold = self.max_hold(terms.max_hold);
        let prefix = self.shared.key_prefix.len();
        if !terms.keep_alive {
            return Ok(LockGuard::new(self.clone(), lease, prefix, place, max_hold));
        }
        // If there are no random numbers now, renewals are less spread out.
        let seed = draw().map_or(0, |draw| draw.seed);
        let most = max_hold.unwrap_or(MAX_HOLD);
        let plan = Plan::new(self.rules(), lease.ttl, lease.since, most, seed);
        let load = self.shared.watchdog.load();
        // From the first byte to the answer that decided it, or a little longer.
        load.took(clock::now().since(lease.since));
        let hold = Arc::new(SharedLease::new(lease.clone(), None));
        let demand = self.demand(lease.ttl, hold.key_bytes());
        let tenure = place.as_ref().map(|place| place.tenure().clone());
        let guard = LockGuard::new(self.clone(), lease, prefix, place, max_hold);
        // Whoever is refused here gives the lock up, by dropping its guard.
        let share = Arc::new(load.keep(demand)?);
        let guard = guard.sharing(Arc::clone(&hold)).counting(Arc::clone(&share));
        let is_told = self.has_listener();
        let guard = if is_told { self.tell_when_lost(guard)? } else { guard };
        let kept = KeptLock { hold, plan: Box::new(plan), share, tenure, is_told };
        self.shared.watchdog.keep(kept).map_err(LockError::Spawn)?;
        Ok(guard)
    }

    /// Has it told when this lock is lost, by the notifier and not only when the guard notices.
    fn tell_when_lost(&self, guard: LockGuard) -> Result<LockGuard, LockError> {
        let Some(listener) = self.shared.listener.clone() else { return Ok(guard) };
        let (resource, since) = (guard.resource().as_bytes().to_vec(), guard.since());
        let tell = move |lost| {
            let held = clock::now().since(since);
            listener.tell(&Event::Lost { resource: Name::new(&resource), held, lost });
        };
        guard.on_lost(tell).map_err(LockError::Spawn)?;
        Ok(guard.with_loss_told())
    }

    /// Starts the thread that tells of losses, if it does not run.
    pub(crate) fn start_notifier(&self) -> Result<(), SpawnError> {
        self.shared.watchdog.start_notifier()
    }

    /// Has the notifier look at a lock, now and when its validity ends.
    pub(crate) fn look_at(&self, hold: Arc<SharedLease>) {
        self.shared.watchdog.look(hold);
    }
}

impl LockRequest<'_> {
    /// Runs `body` under the lock, which is [kept alive](Self::keep_alive) until `body` has ended,
    /// and given up then. `None`, and `body` was not called, if others hold the lock, and waiting
    /// was not asked for or has not helped.
    ///
    /// What `body` is given says whether the lock is [still held](LockGuard::ensure_held), for how
    /// long, and by which [number](LockGuard::fencing_token) if it is [fenced](Self::fenced). What
    /// it returns is handed out whatever becomes of the lock meanwhile, an error of its own
    /// included, and if it panics the lock is given back and the panic goes on.
    ///
    /// A `body` that waits for the same lock, or the same set of them, with the same client waits
    /// for its own end. In the thread that runs it, that is
    /// [`LockError::HeldByThisThread`]; in a thread that `body` waits for, it is not noticed.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), or [`LockError::TooSlow`] if the process stood still between
    /// taking the lock and `body` until the lock was over. `body` was not called then.
    pub fn run<T>(self, body: impl FnOnce(&LockGuard) -> T) -> Result<Option<T>, LockError> {
        let ttl = self.terms.ttl;
        let Some(guard) = self.keep_alive().acquire()? else { return Ok(None) };
        if guard.ensure_held().is_err() {
            return Err(LockError::TooSlow { took: guard.age(clock::now()), ttl });
        }
        guard.bind_to_this_thread();
        let value = body(&guard);
        drop(guard);
        Ok(Some(value))
    }
}
