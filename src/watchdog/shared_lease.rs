//! A lock that more than its guard knows of: what the guard shares with the watchdog's threads.
//!
//! ```text
//!           begin, settle
//!          ┌───────────┐
//!          ▼           │      close (release, drop, passing it on)
//!   new ─▶ Held ───────┴───────────────────────────────────────────▶ Released
//!            │
//!            └── its validity passed, or the nodes said it is gone ─▶ Lost ─▶ told, once
//! ```
//!
//! Whoever is first past `Held` decides, under one lock, and nothing leads back. An extension is
//! left for the nodes under that lock as well ([`SharedLease::begin`]), and a release only after it
//! has been left ([`SharedLease::close`]): so on every node the release stands behind all
//! extensions, and none is begun later. Whoever finds that the validity has passed makes that the
//! end of it: an answer that comes afterwards brings nothing back.
//!
//! As long as there are callbacks, the notifier has the lock among those that it looks at when
//! their validity ends: the first callback brings it there ([`SharedLease::tell`]), and it stays
//! until all are taken. Whoever ends it earlier, by what the nodes say, has the notifier look at it
//! at once.

use super::sync::{Condvar, Mutex, MutexGuard, PoisonError, wait};
use crate::clock::Time;
use crate::engine::{Extended, Lease, NodeSet, Rules, Ttl};
use crate::error::LockLost;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What is to be done when a lock is lost.
pub(crate) type Callback = Box<dyn FnOnce(LockLost) + Send>;

/// A lock as its guard and the watchdog see it.
pub(crate) struct SharedLease {
    state: Mutex<State>,
    /// The lock was lost.
    ended: Condvar,
}

struct State {
    lease: Lease,
    phase: Phase,
    /// How many extensions are under way.
    asking: usize,
    callbacks: Vec<Callback>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Held,
    Lost(LockLost),
    Released,
}

/// What whoever tells of losses finds.
pub(crate) enum LeaseStatus {
    /// Held until this time.
    Held(Time),
    /// Lost, and these are to be told.
    Lost(LockLost, Vec<Callback>),
    /// Given up by its guard.
    Released,
}

impl SharedLease {
    /// A lock that is held, unless it is known to have been lost.
    pub(crate) fn new(lease: Lease, lost: Option<LockLost>) -> Self {
        let phase = lost.map_or(Phase::Held, Phase::Lost);
        let state = State { lease, phase, asking: 0, callbacks: Vec::new() };
        Self { state: Mutex::new(state), ended: Condvar::new() }
    }

    /// Until when the lock is held, if it is.
    pub(crate) fn check(&self, now: Time) -> Result<Time, LockLost> {
        let mut state = self.lock();
        self.look(&mut state, now);
        match state.phase {
            Phase::Lost(lost) => Err(lost),
            Phase::Held | Phase::Released => Ok(state.lease.valid_until),
        }
    }

    /// How it stands with the lock; if it is lost, with those who have not been told.
    pub(crate) fn standing(&self, now: Time) -> LeaseStatus {
        let mut state = self.lock();
        self.look(&mut state, now);
        match state.phase {
            Phase::Held => LeaseStatus::Held(state.lease.valid_until),
            Phase::Lost(lost) => LeaseStatus::Lost(lost, std::mem::take(&mut state.callbacks)),
            Phase::Released => LeaseStatus::Released,
        }
    }

    /// Until when it is held, if it is neither lost nor given up.
    pub(super) fn held_until(&self, now: Time) -> Option<Time> {
        let mut state = self.lock();
        self.look(&mut state, now);
        (state.phase == Phase::Held).then_some(state.lease.valid_until)
    }

    /// Until when it is held, or was.
    pub(crate) fn valid_until(&self) -> Time {
        self.lock().lease.valid_until
    }

    /// When its key will have expired.
    pub(crate) fn expires_at(&self, rules: &Rules) -> Time {
        self.lock().lease.expires_at(rules)
    }

    /// Its key; the first, if there are several.
    pub(super) fn key(&self) -> Arc<[u8]> {
        Arc::clone(&self.lock().lease.key)
    }

    /// How many bytes its keys have.
    pub(crate) fn key_bytes(&self) -> usize {
        self.lock().lease.keys().map(<[u8]>::len).sum()
    }

    /// Has its guard given it up, and is there nobody to be told of anything?
    pub(super) fn is_released(&self) -> bool {
        self.lock().phase == Phase::Released
    }

    /// Begins an extension to `ttl`, if the lock is held: `send` leaves it for the nodes, must not
    /// wait, and says whether there is anything to send. If there is, the extension is to be
    /// [settled](Self::settle) then, and if not, nothing has changed.
    pub(crate) fn begin(
        &self,
        now: Time,
        ttl: Ttl,
        send: impl FnOnce(Lease) -> bool,
    ) -> Result<(), LockLost> {
        let mut state = self.lock();
        self.look(&mut state, now);
        match state.phase {
            Phase::Held => {}
            Phase::Lost(lost) => return Err(lost),
            Phase::Released => return Err(LockLost::Expired),
        }
        if send(state.lease.clone()) {
            // Whatever comes of it: a release must know for how long the key may live, and another
            // extension what it must not shorten.
            state.lease.ttl_longest = state.lease.ttl_longest.max(ttl);
            state.asking += 1;
        }
        Ok(())
    }

    /// Takes note of what an extension came to, and says until when the lock is held now.
    pub(crate) fn settle(&self, now: Time, outcome: Extended) -> Result<Time, LockLost> {
        let mut state = self.lock();
        state.asking -= 1;
        self.look(&mut state, now);
        match outcome {
            Extended::Confirmed(lease) => {
                if state.phase == Phase::Held {
                    let valid_until = state.lease.valid_until.max(lease.valid_until);
                    state.lease.valid_until = valid_until;
                    state.lease.ttl = lease.ttl;
                }
                state.merge(&lease);
            }
            Extended::Unanswered(lease) => state.merge(&lease),
            Extended::Lost(lease) => {
                // If its validity as the extension knew it has not passed, the nodes have said so.
                // If it has, another extension may have been confirmed meanwhile.
                if state.phase == Phase::Held && now < lease.valid_until {
                    self.end(&mut state, now, LockLost::Gone);
                }
                state.merge(&lease);
            }
            Extended::HeldTooLong(_) => {}
        }
        match state.phase {
            Phase::Lost(lost) => Err(lost),
            Phase::Held | Phase::Released => Ok(state.lease.valid_until),
        }
    }

    /// The lock is given up. From here on nothing is sent for it but what the caller sends with the
    /// lease that this hands out, and nobody is told of a loss that has not happened.
    pub(crate) fn close(&self, now: Time, all: NodeSet) -> Lease {
        let mut state = self.lock();
        self.look(&mut state, now);
        let mut lease = state.lease.clone();
        if state.asking > 0 {
            // Where an extension that is under way puts the key back is not known yet.
            lease.nodes = all;
        }
        let callbacks = if state.phase == Phase::Held {
            state.phase = Phase::Released;
            std::mem::take(&mut state.callbacks)
        } else {
            Vec::new()
        };
        drop(state);
        // Not under the lock: what they own may want it when it is dropped.
        drop(callbacks);
        lease
    }

    /// To be told when the lock is lost. Says whether this is to be [looked at](Self::standing) for
    /// it: as long as there are others to be told, it will be.
    #[must_use]
    pub(crate) fn tell(&self, callback: Callback) -> bool {
        let mut state = self.lock();
        if state.phase == Phase::Released {
            // Nothing will be lost, and what the callback owns is dropped when nothing is held.
            drop(state);
            return false;
        }
        state.callbacks.push(callback);
        state.callbacks.len() == 1
    }

    /// Waits until the lock is lost, for up to `limit`, by `clock`.
    pub(crate) fn wait(&self, clock: fn() -> Time, limit: Duration) -> Option<LockLost> {
        let deadline = clock().after(limit);
        let mut state = self.lock();
        loop {
            let now = clock();
            self.look(&mut state, now);
            if let Phase::Lost(lost) = state.phase {
                return Some(lost);
            }
            if now >= deadline {
                return None;
            }
            let until = state.lease.valid_until.min(deadline);
            state = wait(&self.ended, state, until.since(now));
        }
    }

    /// If the validity has passed, that is the end of it.
    fn look(&self, state: &mut State, now: Time) {
        if state.phase == Phase::Held && now >= state.lease.valid_until {
            self.end(state, now, LockLost::Expired);
        }
    }

    fn end(&self, state: &mut State, now: Time, lost: LockLost) {
        state.phase = Phase::Lost(lost);
        state.lease.valid_until = state.lease.valid_until.min(now);
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Where the key may be, and for how long.
    fn merge(&mut self, lease: &Lease) {
        self.lease.nodes = self.lease.nodes.union(lease.nodes);
        self.lease.ttl_longest = self.lease.ttl_longest.max(lease.ttl_longest);
    }
}

impl fmt::Debug for SharedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("SharedLease")
            .field("phase", &state.phase)
            .field("valid_until", &state.lease.valid_until)
            .finish_non_exhaustive()
    }
}
