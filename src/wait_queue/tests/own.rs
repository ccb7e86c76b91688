//! Threads that wait for the lock under which they run something.

use super::*;

#[test]
fn who_runs_something_under_a_lock_does_not_wait_for_it() {
    let lines = lines(10, LONG);
    let place = alone(&lines);
    let again = |deadline| lines.join(&key(), deadline, ROUND);
    place.handle().bind_to_this_thread();
    // As long as it holds none, it waits for nothing but its turn.
    assert!(!lines.lock()[&key()].is_bound_to_this_thread());
    place.set_key_expiry(from_now(LONG));
    assert!(matches!(again(Some(from_now(ROUND))), Joined::HeldByThisThread));
    assert!(matches!(again(None), Joined::HeldByThisThread));
    assert!(matches!(again(Some(Time::ZERO)), Joined::NotQueued), "it does not wait");
    // Another thread waits as ever, and this one for another lock.
    let other = Arc::from(&b"other"[..]);
    assert!(matches!(lines.join(&other, None, ROUND), Joined::Head(..)));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| again(Some(from_now(5 * ROUND))));
        assert!(matches!(waiting.join().unwrap(), Joined::TimedOut));
    });
    // When its validity is over, the lock may be had again.
    place.set_key_expiry(clock::now());
    assert!(matches!(again(None), Joined::Head(..)));
}

#[test]
fn a_lock_that_is_handed_on_is_not_bound_to_the_thread_before() {
    let lines = lines(10, LONG);
    let first = alone(&lines);
    first.set_key_expiry(from_now(LONG));
    first.handle().bind_to_this_thread();
    thread::scope(|scope| {
        let next = scope.spawn(|| lines.join(&key(), None, ROUND).head().0);
        while lines.lock()[&key()].waiting.is_empty() {
            thread::yield_now();
        }
        first.hand_off(lease(1, from_now(LONG))).unwrap();
        let next = next.join().unwrap();
        next.set_key_expiry(from_now(LONG));
        drop(first);
        let soon = Some(from_now(5 * ROUND));
        assert!(matches!(lines.join(&key(), soon, ROUND), Joined::TimedOut));
    });
}
