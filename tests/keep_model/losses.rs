//! Callbacks and waiting threads that meet the loss of a lock.

use super::*;

#[test]
fn a_callback_that_is_added_during_the_loss_is_called_once() {
    explore(|| {
        let world = World::new();
        // The nodes deny it: the thread that learns that has the notifier check the lock.
        let watchdog = spawn(&world, |world| {
            let mut extended = None;
            let begin = |held| extended.replace(held).is_none();
            world.held.begin_extension(world.now(), ttl(1_000), begin).unwrap();
            let lost = world.held.finish_extension(world.now(), Extended::Lost(extended.unwrap()));
            assert_eq!(lost, Err(LossReason::Gone));
            world.check();
        });
        let calls = Arc::clone(&world.calls);
        let callback = move |_| _ = calls.fetch_add(1, Ordering::SeqCst);
        if world.held.on_lost(Box::new(callback)) {
            world.check();
        }
        watchdog.join().unwrap();
        assert_eq!(world.calls(), 2, "the earlier callback, and this one");
    });
}

#[test]
fn a_thread_that_waits_for_the_loss_is_woken_by_it() {
    explore(|| {
        let world = World::new();
        let holder = spawn(&world, |world| world.held.wait_lost(|| at(EXTENSION), Duration::MAX));
        let mut extended = None;
        let begin = |held| extended.replace(held).is_none();
        world.held.begin_extension(world.now(), ttl(1_000), begin).unwrap();
        let lost = world.held.finish_extension(world.now(), Extended::Lost(extended.unwrap()));
        assert_eq!(lost, Err(LossReason::Gone));
        assert_eq!(holder.join().unwrap(), Some(LossReason::Gone));
        assert_eq!(world.held.check(at(EXTENSION)), Err(LossReason::Gone));
    });
}
