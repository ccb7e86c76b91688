//! What is done with a request: acquiring its lock, running something under it, resuming it by its
//! token. All ways to acquire it are one implementation, which differs in how long it waits.

use super::acquire::Acquisition;
use super::request::LockKeys;
use super::{LockClient, LockRequest};
use crate::clock;
use crate::engine::{Extended, Extension, Wait};
use crate::error::{Error, LockLost, LossReason, NoQuorum, NotResumable};
use crate::event::Event;
use crate::guard::{LockGuard, LockToken};
use crate::name::Name;
use crate::pending::{Call, Pending};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl LockRequest<'_> {
    /// Acquires the lock, and waits for it as long as it takes: for the holder and for [those who
    /// came before](crate::LockClient) to release it, for enough nodes to be reachable, and, if a
    /// majority of them was started less than [`max_ttl`](crate::Builder::max_ttl) ago, for their
    /// grants to count (see [`restart_guard`](crate::Builder::restart_guard)). On servers that have
    /// just been started that takes a minute by default, and [`Event::Quarantined`] reports it; on
    /// ZooKeeper nothing has to be waited for after a start. A [token](Self::cancelled_by) ends the
    /// wait.
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), but only if waiting cannot help: if most nodes want a
    /// password, for instance, or are not Redis servers, or an ensemble refuses the credentials; or
    /// if the lock's key has [other data](Error::NotALock) that does not end.
    pub fn lock(self) -> Result<LockGuard, Error> {
        let guard = self.acquire(Wait::Forever)?;
        Ok(guard.expect("a call that waits as long as it takes does not end without the lock"))
    }

    /// Acquires the lock if it is free and no other call waits for it, without waiting.
    ///
    /// `Ok(None)` means that a majority of the nodes *answered* and other clients hold the lock or
    /// wait for it, or that another thread of this client holds it, or this one:
    /// [`own_holder`](Self::own_holder) tells which, and [`inspect`](crate::LockClient::inspect)
    /// which others.
    ///
    /// If several clients ask at the same moment, each may be granted some nodes and none a
    /// majority. Such a split attempt is undone and repeated after a random pause: up to four
    /// attempts, within one [`node_timeout`](crate::Builder::node_timeout). In rare cases all
    /// clients still get `None`: so it says that another client or thread asked for the lock or
    /// holds it, not that it works under the lock. To be sure that one of them does the work, ask
    /// again or [wait](Self::try_lock_for). On ZooKeeper, the first in the queue gets it.
    ///
    /// # Errors
    ///
    /// The resource's name, the ttl or another setting of the request cannot be used: what these
    /// methods say. Or [`Error::NoQuorum`]: too few nodes gave an answer that counts, or too many
    /// are in [quarantine](crate::Builder::restart_guard); it has a report from each node. Or
    /// [`Error::NotALock`]: other data has this name. Or the nodes took too long, two of them are
    /// one server, there are no random numbers, or the call was [cancelled](Self::cancelled_by).
    pub fn try_lock(self) -> Result<Option<LockGuard>, Error> {
        self.acquire(Wait::No)
    }

    /// Acquires the lock, and waits for it for up to `wait`, in [order](crate::LockClient) with
    /// other calls that wait. `None` if another client or thread still holds it then; no call that
    /// waiting may help gives up before. A `wait` of zero is a [`try_lock`](Self::try_lock), and
    /// one that overflows the clock waits as long as it takes.
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), if the last attempt failed so, or at once if waiting cannot
    /// help: for errors that [stay](crate::NodeError::is_permanent), and if the wait ends before
    /// the [quarantine](crate::error::NoQuorum::quarantine) of a majority does, unless others hold
    /// the lock.
    pub fn try_lock_for(self, wait: Duration) -> Result<Option<LockGuard>, Error> {
        self.acquire(Wait::Until(clock::now().after(wait)))
    }

    /// As [`try_lock_for`](Self::try_lock_for), until `deadline`: for several locks of one request
    /// that is served, for instance. A `deadline` that has passed makes it a
    /// [`try_lock`](Self::try_lock).
    pub fn try_lock_until(self, deadline: Instant) -> Result<Option<LockGuard>, Error> {
        self.acquire(Wait::Until(clock::at(deadline)))
    }
}

// The same as calls that take no thread.

impl LockRequest<'_> {
    /// As [`lock`](Self::lock), without a thread that waits: in a task of any executor, or with a
    /// callback in a program that has none. See [`Pending`].
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn charge(order: u32) {}
    /// # async fn example(client: redlatch::LockClient) -> Result<(), redlatch::Error> {
    /// let lock = client.request("orders:42").keep_alive().lock_async().await?;
    /// charge(42).await;
    /// drop(lock); // written to the nodes, and not waited for
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock). [`Error::Spawn`]: the thread that goes on with such calls could not
    /// be started. [`Error::TooSlow`] also if the lock was granted, and its validity had passed
    /// before the task was polled.
    pub fn lock_async(self) -> Pending<LockGuard> {
        let ttl = self.settings.ttl;
        self.start(
            Wait::Forever,
            |guard| {
                guard.expect("a call that waits as long as it takes does not end without the lock")
            },
            move |guard| still_held(guard, ttl),
        )
    }

    /// As [`try_lock`](Self::try_lock), without a thread that waits for the answers. See
    /// [`lock_async`](Self::lock_async).
    ///
    /// # Errors
    ///
    /// As [`try_lock`](Self::try_lock), and those that [`lock_async`](Self::lock_async) adds.
    pub fn try_lock_async(self) -> Pending<Option<LockGuard>> {
        self.try_start(Wait::No)
    }

    /// As [`try_lock_for`](Self::try_lock_for), without a thread that waits. The time counts from
    /// this call, and not from the first poll. See [`lock_async`](Self::lock_async).
    ///
    /// # Errors
    ///
    /// As [`try_lock_for`](Self::try_lock_for), and those that [`lock_async`](Self::lock_async)
    /// adds.
    pub fn try_lock_for_async(self, wait: Duration) -> Pending<Option<LockGuard>> {
        self.try_start(Wait::Until(clock::now().after(wait)))
    }

    /// As [`try_lock_until`](Self::try_lock_until), without a thread that waits. See
    /// [`lock_async`](Self::lock_async).
    ///
    /// # Errors
    ///
    /// As [`try_lock_until`](Self::try_lock_until), and those that
    /// [`lock_async`](Self::lock_async) adds.
    pub fn try_lock_until_async(self, deadline: Instant) -> Pending<Option<LockGuard>> {
        self.try_start(Wait::Until(clock::at(deadline)))
    }

    fn try_start(self, wait: Wait) -> Pending<Option<LockGuard>> {
        let ttl = self.settings.ttl;
        self.start(
            wait,
            |guard| guard,
            move |guard| guard.map(|guard| still_held(guard, ttl)).transpose(),
        )
    }

    /// All ways to acquire the lock without a thread. `fetched` looks at the result when it is
    /// fetched, which may be long after it came.
    fn start<T: Send + 'static>(
        self,
        wait: Wait,
        result: fn(Option<LockGuard>) -> T,
        fetched: impl FnOnce(T) -> Result<T, Error> + Send + 'static,
    ) -> Pending<T> {
        let Self {
            client,
            keys,
            mut settings,
        } = self;
        // It belongs to no thread but one that the request names.
        settings.thread = Some(settings.thread.flatten());
        let core = Arc::clone(&client.core);
        let client = LockClient {
            core: Arc::clone(&core),
            _handle: None,
        };
        let call = Box::new(move |driven| {
            let call: Call<T> = Box::pin(async move {
                let request = LockRequest {
                    client: &client,
                    keys,
                    settings,
                };
                request.acquire_started(&driven, wait).await.map(result)
            });
            call
        });
        Pending::new(&core, call, Box::new(fetched))
    }
}

/// The task may have come late.
fn still_held(mut guard: LockGuard, ttl: Duration) -> Result<LockGuard, Error> {
    if guard.check().is_ok() {
        return Ok(guard);
    }
    guard.waive_hold_at_least(); // nothing was done under it
    Err(Error::TooSlow {
        took: guard.age(clock::now()),
        ttl,
    })
}

// Running something under a lock: all of it is one implementation, which differs in how long it
// waits.

impl LockRequest<'_> {
    /// Waits for the lock as long as it takes, runs `body` under it, and releases it. Meanwhile the
    /// lock is [kept alive](Self::keep_alive).
    ///
    /// The lock ends by the clock anyway if the nodes cannot be reached for too long: call
    /// [`ensure_held`](LockGuard::ensure_held) in the line before the one that must not run twice.
    /// `Ok` means that the lock was held from beginning to end, as far as the nodes can tell: the
    /// [release](LockGuard::release) waits for their answers. If `body` panics, the lock is
    /// released and the panic continues.
    ///
    /// The error type is the body's own: any that an [`Error`] converts into. If this call is the
    /// last expression of a function, its type is known from there; a `?` behind the call leaves it
    /// open, and the body ends in `Ok::<_, Box<dyn std::error::Error>>(value)` or the like.
    ///
    /// ```no_run
    /// # fn next_order() -> std::io::Result<u32> { Ok(1) }
    /// # fn charge(order: u32) -> std::io::Result<()> { Ok(()) }
    /// # fn example(client: &redlatch::LockClient) -> Result<(), Box<dyn std::error::Error>> {
    /// client.request("orders").with_lock(|lock| {
    ///     let order = next_order()?; // std::io::Error
    ///     lock.ensure_held()?; // redlatch::Error
    ///     charge(order)?;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// The lock is not re-entrant: a `body` that waits for the same lock, or one of the same set,
    /// with the same client waits for its own end. In the thread that runs it, that is
    /// [`Error::HeldByThisThread`]; in a thread that `body` waits for, it is not detected. A
    /// `try_lock` in `body` returns `None`. A [`lock_async`](Self::lock_async) belongs to no
    /// thread: a `body` that waits for it waits for itself, and that is not detected either. In a
    /// task there is [`with_lock_async`](Self::with_lock_async).
    ///
    /// # Errors
    ///
    /// The error of `body`, also if the lock was lost. Or, converted:
    ///
    /// * [`Error::Lost`]: `body` succeeded, and the lock was lost before it ended. What must be
    ///   undone then, `body` leaves in a variable outside of it. A release that too few nodes
    ///   answer is not a loss.
    /// * As [`lock`](Self::lock), or [`Error::TooSlow`] if the process was stopped after it had
    ///   acquired the lock, until the lock's validity had passed. Then `body` was not called.
    pub fn with_lock<T, E: From<Error>>(
        self,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<T, E> {
        let value = self.run_body(Wait::Forever, body, lost)?;
        Ok(value.expect("a call that waits as long as it takes does not end without the lock"))
    }

    /// As [`with_lock`](Self::with_lock), if the lock is free, as [`try_lock`](Self::try_lock)
    /// acquires it. `None`, and `body` was not called, if another client or thread holds it.
    ///
    /// ```no_run
    /// # use redlatch::Error;
    /// # fn write_the_report() {}
    /// # let client = redlatch::LockClient::new("redis://localhost")?;
    /// let ran = client.request("report").try_with_lock(|lock| {
    ///     lock.ensure_held()?;
    ///     write_the_report();
    ///     Ok::<_, Error>(())
    /// })?;
    /// if ran.is_none() {
    ///     eprintln!("another machine writes the report");
    /// }
    /// # Ok::<(), redlatch::Error>(())
    /// ```
    pub fn try_with_lock<T, E: From<Error>>(
        self,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run_body(Wait::No, body, lost)
    }

    /// As [`try_with_lock`](Self::try_with_lock), and waits for the lock for up to `wait`, as
    /// [`try_lock_for`](Self::try_lock_for) does.
    pub fn try_with_lock_for<T, E: From<Error>>(
        self,
        wait: Duration,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run_body(Wait::Until(clock::now().after(wait)), body, lost)
    }

    /// As [`try_with_lock_for`](Self::try_with_lock_for), until `deadline`.
    pub fn try_with_lock_until<T, E: From<Error>>(
        self,
        deadline: Instant,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.run_body(Wait::Until(clock::at(deadline)), body, lost)
    }

    /// All ways to run a user's body under the lock. If the lock was lost meanwhile, `lost` says
    /// what the body's value is worth.
    pub(crate) fn run_body<T, E: From<Error>>(
        self,
        wait: Wait,
        body: impl FnOnce(&LockGuard) -> Result<T, E>,
        lost: impl FnOnce(LockLost, T) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let ttl = self.settings.ttl;
        let Some(mut guard) = self.keep_alive().acquire(wait)? else {
            return Ok(None);
        };
        if guard.check().is_err() {
            guard.waive_hold_at_least(); // the job did not run
            return Err(Error::TooSlow {
                took: guard.age(clock::now()),
                ttl,
            }
            .into());
        }
        guard.bind_to_this_thread();
        let result = body(&guard);
        let held = guard.release_after_work();
        let value = result?;
        match held {
            Ok(()) => Ok(Some(value)),
            Err(error) => lost(error, value).map(Some),
        }
    }
}

/// The body has worked, and another client may have worked at the same time.
fn lost<T, E: From<Error>>(lost: LockLost, _: T) -> Result<T, E> {
    Err(Error::from(lost).into())
}

// Resuming a lock that another process holds, or held, by its token.

impl LockRequest<'_> {
    /// Makes a guard of a lock that is held and has none, by its [token](LockGuard::into_token): a
    /// majority of the nodes confirms that they have the lock, and extends it to the
    /// [ttl](Self::ttl) of this request, never shortening it. It does not wait, for there is
    /// nothing to wait for.
    ///
    /// The request names the same resources, all of them, as the one that acquired the lock, with
    /// the same [prefix](crate::Builder::key_prefix). Its settings for how long the lock is held
    /// count from here on, as if it had been requested now; the [fencing
    /// token](LockGuard::fencing_token), the [slot](LockGuard::slot), whether it is a reader's and
    /// the owner are those of the token.
    ///
    /// The lock is held from when this returns; [the
    /// guarantees](crate::guide::guarantees#locks-that-another-process-resumes) have what is known
    /// of the time before. The listener gets [`Event::Acquired`], or [`Event::Failed`].
    ///
    /// # Errors
    ///
    /// * [`Error::Lost`]: no majority has the lock. It has ended, or was released or removed; of
    ///   several resources, at least one. What is left of it is released.
    /// * [`Error::NoQuorum`], [`Error::TooSlow`]: too few nodes answered, or too late, or are in
    ///   [quarantine](crate::Builder::restart_guard): those may have forgotten whose the lock is
    ///   now. The lock is as it was, and resuming it may be tried again.
    /// * [`Error::NotResumable`]: on ZooKeeper; or the names are not those of the token.
    /// * What [`lock`](Self::lock) refuses before it asks a node.
    pub fn resume(self, token: &LockToken) -> Result<LockGuard, Error> {
        let core = &self.client.core;
        if core.is_forked() {
            return Err(Error::OtherProcess);
        }
        if core.backend.session_limits().is_some() {
            return Err(Error::NotResumable(NotResumable::Session));
        }
        if core
            .cancellation
            .call(self.settings.cancelled_by.as_ref())
            .is_cancelled()
        {
            return Err(Error::Cancelled);
        }
        let keys = self
            .keys
            .as_ref()
            .map_err(|error| Error::Resource(*error))?;
        // Asked with others, the nodes would find that those are not held, and the lock lost.
        if !token.is_of(&keys.first, &keys.more) {
            return Err(Error::NotResumable(NotResumable::OtherNames));
        }
        let began = clock::now();
        let result = self.resumed(keys, token);
        if !matches!(result, Err(Error::Ttl(_))) {
            let resource = Name::new(&keys.first[core.key_prefix.len()..]);
            let attempts = 0;
            let waited = clock::now().since(began);
            core.events.emit(|| match &result {
                Ok(guard) => Event::Acquired {
                    resource,
                    attempts,
                    waited,
                    validity: guard.remaining(),
                },
                Err(error) => Event::Failed {
                    resource,
                    attempts,
                    waited,
                    error,
                },
            });
        }
        result
    }

    fn resumed(&self, keys: &LockKeys, token: &LockToken) -> Result<LockGuard, Error> {
        let core = &self.client.core;
        let attributes = token.attributes(keys.more.clone(), core.fencing_expiry);
        let spec = self.spec(attributes, Wait::No)?;
        let ttl = spec.ttl;
        let least = spec.min_validity;
        let acquisition = Acquisition { core, spec };
        acquisition.prepare_keeping()?;
        let began = clock::now();
        let held = token.held(&acquisition.spec, began, &core.rules);
        let (outcome, reports) = core.backend.extend(Extension {
            held,
            ttl,
            began,
            is_resumed: true,
        });
        let now = clock::now();
        match outcome {
            Extended::Confirmed(held) if now.after(least) < held.valid_until => {
                acquisition.guard(held, None)
            }
            Extended::Lost(held) if now < held.valid_until => {
                // What a minority still has is nobody's, and was extended.
                core.backend.give_up(&held, None);
                let resource = &keys.first[core.key_prefix.len()..];
                Err(LockLost::new(resource, LossReason::Gone).into())
            }
            Extended::Confirmed(_) | Extended::Lost(_) => Err(Error::TooSlow {
                took: now.since(began),
                ttl: ttl.as_duration(),
            }),
            Extended::Unanswered(_) => Err(Error::NoQuorum(NoQuorum::new(reports))),
            Extended::HeldTooLong(held) => {
                let max_hold = core.rules.hold_max.unwrap_or(held);
                Err(Error::HeldTooLong { held, max_hold })
            }
        }
    }
}
