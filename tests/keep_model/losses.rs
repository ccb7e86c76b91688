//! Callbacks and waiting threads that meet the loss of a lock.

use super::*;
use std::task::{Wake, Waker};

/// The nodes deny an extension.
fn learn_of_loss(world: &World) {
    let extension = world.held.extension(world.now(), ttl(1_000)).unwrap();
    let lost = world
        .held
        .finish_extension(world.now(), Extended::Lost(extension.held));
    assert_eq!(lost, Err(LossReason::Gone));
}

#[test]
fn a_callback_that_is_added_during_the_loss_is_called_once() {
    explore(|| {
        let world = World::new();
        // The thread that learns of it has the notifier check the lock.
        let watchdog = spawn(&world, |world| {
            learn_of_loss(world);
            world.check();
        });
        let calls = Arc::clone(&world.calls);
        let callback = move |_| _ = calls.fetch_add(1, Ordering::SeqCst);
        if world.held.on_lost(0, Box::new(callback)) {
            world.check();
        }
        watchdog.join().unwrap();
        assert_eq!(world.calls(), 2, "the earlier callback, and this one");
    });
}

/// Counts how often it is woken, and looks at the lock then and when it is dropped: both need its
/// mutex.
struct Looks {
    world: Arc<World>,
    woken: Arc<AtomicUsize>,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        _ = self.woken.fetch_add(1, Ordering::SeqCst);
        assert!(self.world.held.check(at(EXTENSION)).is_err());
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        _ = self.world.held.check(at(EXTENSION));
    }
}

#[test]
fn a_task_that_waits_for_the_loss_is_woken_once_or_finds_it() {
    explore(|| {
        let world = World::new();
        let watchdog = spawn(&world, |world| {
            learn_of_loss(world);
            world.check();
        });
        let woken: [Arc<AtomicUsize>; 2] = Default::default();
        for woken in &woken {
            let waker = Waker::from(Arc::new(Looks {
                world: Arc::clone(&world),
                woken: Arc::clone(woken),
            }));
            if world.held.wake_when_lost(0, 1, waker) {
                world.check();
            }
        }
        watchdog.join().unwrap();
        let [first, last] = woken.map(|it| it.load(Ordering::SeqCst));
        assert!(first <= 1, "it may have come before the next");
        assert_eq!(last, 1);
    });
}

#[test]
fn a_task_that_waits_no_more_is_not_woken() {
    explore(|| {
        let world = World::new();
        let woken = Arc::new(AtomicUsize::new(0));
        let waker = Waker::from(Arc::new(Looks {
            world: Arc::clone(&world),
            woken: Arc::clone(&woken),
        }));
        assert!(!world.held.wake_when_lost(0, 1, waker), "it is checked");
        let other = spawn(&world, |world| world.held.forget_task(1));
        let held = world.give_up();
        other.join().unwrap();
        assert_eq!(held.valid_until, at(END));
        world.millis.store(60_000, Ordering::SeqCst);
        world.check();
        assert_eq!(woken.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn a_thread_that_waits_for_the_loss_is_woken_by_it() {
    explore(|| {
        let world = World::new();
        let holder = spawn(&world, |world| {
            world.held.wait_lost(|| at(EXTENSION), Duration::MAX)
        });
        learn_of_loss(&world);
        assert_eq!(holder.join().unwrap(), Some(LossReason::Gone));
        assert_eq!(world.held.check(at(EXTENSION)), Err(LossReason::Gone));
    });
}

/// A guard of a share that two guards have gives it up. Says whether it was in time.
fn leave(world: &World, guards: &AtomicUsize, guard: usize) -> bool {
    let now = world.now();
    if guards.fetch_sub(1, Ordering::SeqCst) > 1 {
        return world
            .held
            .leave(now, guard)
            .is_ok_and(|valid_until| now < valid_until);
    }
    world.give_up();
    world.held.check(now).is_ok()
}

#[test]
fn of_guards_that_have_one_share_the_last_releases_it_and_each_is_told_of_its_own_loss() {
    explore(|| {
        let world = World::new();
        let others_calls = Arc::new(AtomicUsize::new(0));
        let guards = Arc::new(AtomicUsize::new(2));
        let calls = Arc::clone(&others_calls);
        let callback = move |_| _ = calls.fetch_add(1, Ordering::SeqCst);
        assert!(
            !world.held.on_lost(1, Box::new(callback)),
            "it is checked for the first one"
        );
        let notifier = spawn(&world, |world| {
            world.millis.store(END, Ordering::SeqCst);
            world.check();
        });
        let guards_of_other = Arc::clone(&guards);
        let other = spawn(&world, move |world| leave(world, &guards_of_other, 1));
        let was_in_time = [leave(&world, &guards, 0), other.join().unwrap()];
        notifier.join().unwrap();
        world.check();
        let calls = [world.calls(), others_calls.load(Ordering::SeqCst)];
        assert_eq!(calls, was_in_time.map(|in_time| usize::from(!in_time)));
        assert_eq!(*world.nodes.lock().unwrap(), [Sent::Release]);
    });
}
