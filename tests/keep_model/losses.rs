//! Those who are told of a loss while it happens.

use super::*;

#[test]
fn a_callback_that_meets_the_loss_is_called_once() {
    explore(|| {
        let world = World::new();
        // The nodes deny it: whoever learns that has the notifier look.
        let watchdog = spawn(&world, |world| {
            let mut extended = None;
            let begin = |lease| extended.replace(lease).is_none();
            world.lease.begin_extension(world.now(), ttl(1_000), begin).unwrap();
            let lost = world.lease.finish_extension(world.now(), Extended::Lost(extended.unwrap()));
            assert_eq!(lost, Err(LockLost::Gone));
            world.look();
        });
        let told = Arc::clone(&world.told);
        let tell = move |_| _ = told.fetch_add(1, Ordering::SeqCst);
        if world.lease.on_lost(Box::new(tell)) {
            world.look();
        }
        watchdog.join().unwrap();
        assert_eq!(world.told(), 2, "the one that was there before, and this one");
    });
}

#[test]
fn one_who_waits_for_the_loss_is_woken_by_it() {
    explore(|| {
        let world = World::new();
        let holder = spawn(&world, |world| world.lease.wait_lost(|| at(RENEWAL), Duration::MAX));
        let mut extended = None;
        let begin = |lease| extended.replace(lease).is_none();
        world.lease.begin_extension(world.now(), ttl(1_000), begin).unwrap();
        let lost = world.lease.finish_extension(world.now(), Extended::Lost(extended.unwrap()));
        assert_eq!(lost, Err(LockLost::Gone));
        assert_eq!(holder.join().unwrap(), Some(LockLost::Gone));
        assert_eq!(world.lease.check(at(RENEWAL)), Err(LockLost::Gone));
    });
}
