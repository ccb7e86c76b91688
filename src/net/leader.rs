//! The leader, and how it steps down: see [`leader_followers`](super::leader_followers).

use super::leader_followers::{EventLoop, LeaderFollowers, Wake};
use super::sync::{LeaderLockGuard, Ordering, fence, panicking};
use std::ops::{Deref, DerefMut};

/// A thread's right to run the event loop. When this is dropped, the thread steps down: it empties
/// the inbox, releases the leader lock and promotes a follower.
pub(super) struct Leader<'a, E: EventLoop, W: Wake>(PanicGuard<'a, E, W>);

impl<'a, E: EventLoop, W: Wake> Leader<'a, E, W> {
    pub(super) fn new(
        shared: &'a LeaderFollowers<E, W>,
        event_loop: LeaderLockGuard<'a, E>,
    ) -> Self {
        let was_panicking = panicking();
        Self(PanicGuard { shared, event_loop: Some(event_loop), was_panicking })
    }
}

/// Poisons an event loop that panicked, also if it panics while the leader steps down.
struct PanicGuard<'a, E: EventLoop, W: Wake> {
    shared: &'a LeaderFollowers<E, W>,
    event_loop: Option<LeaderLockGuard<'a, E>>,
    /// Was the thread panicking before it became the leader? Then it drops a lock guard while it
    /// unwinds, and the panic is not the event loop's.
    was_panicking: bool,
}

impl<E: EventLoop, W: Wake> PanicGuard<'_, E, W> {
    fn has_panicked(&self) -> bool {
        panicking() && !self.was_panicking
    }
}

impl<E: EventLoop, W: Wake> Drop for PanicGuard<'_, E, W> {
    fn drop(&mut self) {
        if self.has_panicked() {
            // The leader lock is still held, so no thread becomes the leader before the flag is
            // set.
            self.shared.is_poisoned.store(true, Ordering::SeqCst);
            self.event_loop.iter_mut().for_each(|event_loop| event_loop.set_poisoned());
            self.shared.lock_followers().promote_all();
        }
    }
}

impl<E: EventLoop, W: Wake> Drop for Leader<'_, E, W> {
    fn drop(&mut self) {
        if self.0.has_panicked() {
            return;
        }
        let PanicGuard { shared, event_loop: locked, .. } = &mut self.0;
        while let Some(event_loop) = locked {
            shared.is_asleep.store(false, Ordering::SeqCst);
            shared.empty_inbox(event_loop);
            let next = event_loop.next_follower().cloned();
            // A follower that is promoted leads next, and writes what is left to it together with
            // what other threads ask for until then. Without one, there may be no other leader for
            // a long time: also what the last replies have caused is written now, such as a key to
            // be restored or a script to be sent by its source.
            if next.is_none() || shared.has_io_thread {
                event_loop.flush();
            }
            *locked = None;
            if let Some(follower) = next {
                follower.promote();
            }
            // A job that was put into the inbox after it was emptied is left to the next leader. If
            // there is none, this thread leads again.
            fence(Ordering::SeqCst);
            if !shared.inbox.is_empty() {
                *locked = shared.try_lock_event_loop();
            }
        }
    }
}

impl<E: EventLoop, W: Wake> Deref for Leader<'_, E, W> {
    type Target = E;

    fn deref(&self) -> &E {
        self.0.event_loop.as_deref().expect("only dropping the leader releases the lock")
    }
}

impl<E: EventLoop, W: Wake> DerefMut for Leader<'_, E, W> {
    fn deref_mut(&mut self) -> &mut E {
        self.0.event_loop.as_deref_mut().expect("only dropping the leader releases the lock")
    }
}
