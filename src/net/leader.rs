//! The driver in the hands of a thread, and how it is put down: see [`turn`](super::turn).

use super::leader_followers::{Drive, LeaderFollowers, Wake};
use super::sync::{LeaderLockGuard, Ordering, fence, panicking};
use std::ops::{Deref, DerefMut};

/// The driver in the hands of a thread. It is put down properly however the thread leaves.
pub(super) struct Leader<'a, D: Drive, W: Wake>(PanicGuard<'a, D, W>);

impl<'a, D: Drive, W: Wake> Leader<'a, D, W> {
    pub(super) fn new(turn: &'a LeaderFollowers<D, W>, driver: LeaderLockGuard<'a, D>) -> Self {
        Self(PanicGuard { turn, driver: Some(driver), was_panicking: panicking() })
    }
}

/// What sees to it that a driver which panicked, be it while it was put down, is never taken again.
struct PanicGuard<'a, D: Drive, W: Wake> {
    turn: &'a LeaderFollowers<D, W>,
    driver: Option<LeaderLockGuard<'a, D>>,
    /// Was the thread panicking already, and is it dropping a guard on its way?
    was_panicking: bool,
}

impl<D: Drive, W: Wake> PanicGuard<'_, D, W> {
    fn is_broken(&self) -> bool {
        panicking() && !self.was_panicking
    }
}

impl<D: Drive, W: Wake> Drop for PanicGuard<'_, D, W> {
    fn drop(&mut self) {
        if self.is_broken() {
            // The driver is still in these hands: nobody takes it before this is known.
            self.turn.is_broken.store(true, Ordering::SeqCst);
            self.driver.iter_mut().for_each(|driver| driver.abandon());
            self.turn.lock_seats().call_all();
        }
    }
}

impl<D: Drive, W: Wake> Drop for Leader<'_, D, W> {
    fn drop(&mut self) {
        if self.0.is_broken() {
            return;
        }
        let PanicGuard { turn, driver: taken, .. } = &mut self.0;
        while let Some(driver) = taken {
            turn.is_asleep.store(false, Ordering::SeqCst);
            turn.clear_inbox(driver);
            // Also what the last answers have called for, such as a key to be put back or a script
            // to be sent by its source: nobody may come for long who would write it.
            driver.flush();
            let next = driver.waiter().cloned();
            *taken = None;
            if let Some(seat) = next {
                seat.call();
            }
            // What was left in the inbox since it was cleared is ours to see to, unless somebody
            // has taken the driver: then it is theirs.
            fence(Ordering::SeqCst);
            if !turn.inbox.is_empty() {
                *taken = turn.take_driver();
            }
        }
    }
}

impl<D: Drive, W: Wake> Deref for Leader<'_, D, W> {
    type Target = D;

    fn deref(&self) -> &D {
        self.0.driver.as_deref().expect("it is put down only when this is dropped")
    }
}

impl<D: Drive, W: Wake> DerefMut for Leader<'_, D, W> {
    fn deref_mut(&mut self) -> &mut D {
        self.0.driver.as_deref_mut().expect("it is put down only when this is dropped")
    }
}
