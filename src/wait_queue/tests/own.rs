//! Threads that wait for the lock that they work under.

use super::*;

#[test]
fn a_thread_that_works_under_a_lock_does_not_wait_for_it() {
    let queues = queues(10, LONG);
    let head = alone(&queues);
    let again = |wait| queues.join(&key(), wait, ROUND, None);
    head.handle().bind_to_this_thread();
    // As long as it holds no lock, it does not wait for itself.
    assert!(!queues.lock()[&key()].is_bound_to_this_thread());
    head.set_key_expiry(from_now(LONG));
    assert!(matches!(again(Wait::Until(from_now(ROUND))), Joined::HeldByThisThread));
    assert!(matches!(again(Forever), Joined::HeldByThisThread));
    assert!(matches!(again(Wait::Until(Time::ZERO)), Joined::NotQueued), "it does not wait");
    // Another thread waits as always, and this one for another lock.
    let other = Arc::from(&b"other"[..]);
    assert!(matches!(queues.join(&other, Forever, ROUND, None), Joined::Head(..)));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| again(Wait::Until(from_now(5 * ROUND))));
        assert!(matches!(waiting.join().unwrap(), Joined::TimedOut));
    });
    // When the key has expired, the lock may be taken again.
    head.set_key_expiry(clock::now());
    assert!(matches!(again(Forever), Joined::Head(..)));
}

#[test]
fn a_caller_that_does_not_queue_is_told_that_it_waits_for_itself() {
    let queues = queues(10, LONG);
    let waits = |wait| queues.waits_for_itself(&key(), wait);
    assert!(!waits(Forever));
    assert!(queues.lock().is_empty(), "a look leaves nothing behind");
    let head = alone(&queues);
    head.handle().bind_to_this_thread();
    assert!(!waits(Forever), "it holds no lock yet");
    head.set_key_expiry(from_now(LONG));
    assert!(waits(Forever) && waits(Wait::Until(from_now(LONG))));
    // As in the queue: a time that has come means that it does not wait.
    assert!(!waits(Wait::No) && !waits(Wait::Until(Time::ZERO)));
    assert!(!waits(Wait::Until(clock::now())));
    assert!(!queues.waits_for_itself(&Arc::from(&b"other"[..]), Forever));
    thread::scope(|scope| assert!(!scope.spawn(|| waits(Forever)).join().unwrap()));
    assert!(queues.lock()[&key()].waiters.is_empty());
    head.set_key_expiry(clock::now());
    assert!(!waits(Forever), "the lock may be taken again");
}

#[test]
fn a_lock_that_was_handed_off_is_not_bound_to_the_previous_thread() {
    let queues = queues(10, LONG);
    let first = alone(&queues);
    first.set_key_expiry(from_now(LONG));
    first.handle().bind_to_this_thread();
    thread::scope(|scope| {
        let next = scope.spawn(|| queues.join(&key(), Forever, ROUND, None).head().0);
        while queues.lock()[&key()].waiters.is_empty() {
            thread::yield_now();
        }
        first.hand_off(held_lock(1, from_now(LONG))).unwrap();
        let next = next.join().unwrap();
        next.set_key_expiry(from_now(LONG));
        drop(first);
        let soon = Wait::Until(from_now(5 * ROUND));
        assert!(matches!(queues.join(&key(), soon, ROUND, None), Joined::TimedOut));
    });
}

#[test]
fn a_head_that_was_replaced_does_not_end_the_head_of_a_later_queue() {
    let queues = queues(10, LONG);
    let first = alone(&queues);
    // Its key has expired, so the next caller replaces it.
    first.set_key_expiry(clock::now());
    drop(alone(&queues));
    assert!(queues.lock().is_empty());
    let later = alone(&queues);
    later.handle().bind_to_this_thread();
    later.set_key_expiry(from_now(LONG));
    drop(first);
    assert!(matches!(queues.join(&key(), Forever, ROUND, None), Joined::HeldByThisThread));
}
