//! Threads that wait for the lock that they work under.

use super::*;

#[test]
fn a_thread_that_works_under_a_lock_does_not_wait_for_it() {
    let queues = queues(10, LONG);
    let head = alone(&queues);
    let again = |wait| queues.join(&key(), wait, ROUND, here());
    head.handle().bind_to_this_thread();
    // As long as it holds no lock, it does not wait for itself.
    assert!(!queues.lock().by_key[&key()].is_bound_to_this_thread());
    head.set_key_expiry(from_now(LONG));
    assert!(matches!(
        again(Wait::Until(from_now(ROUND))),
        Joined::HeldByThisThread
    ));
    assert!(matches!(again(Forever), Joined::HeldByThisThread));
    assert!(
        matches!(again(Wait::Until(Time::ZERO)), Joined::NotQueued),
        "it does not wait"
    );
    // Another thread waits as always, and this one for another lock.
    let other = Arc::from(&b"other"[..]);
    assert!(matches!(
        queues.join(&other, Forever, ROUND, here()),
        Joined::Head(..)
    ));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| again(Wait::Until(from_now(5 * ROUND))));
        assert!(matches!(waiting.join().unwrap(), Joined::TimedOut));
    });
    // When the key has expired, the lock may be taken again.
    head.set_key_expiry(clock::now());
    assert!(matches!(again(Forever), Joined::Head(..)));
}

#[test]
fn a_queue_knows_the_thread_that_took_the_lock_as_long_as_it_is_held() {
    let queues = queues(10, LONG);
    let holder = || queues.holder(&key()).map(|taker| taker.thread);
    assert_eq!(holder(), None);
    assert!(
        queues.lock().by_key.is_empty(),
        "a look leaves nothing behind"
    );
    let head = alone(&queues);
    assert_eq!(holder(), None, "it holds no lock yet");
    head.set_key_expiry(from_now(LONG));
    assert_eq!(holder(), Some(here().thread));
    head.set_key_expiry(clock::now());
    assert_eq!(holder(), None, "the lock may be taken again");
    // A lock that is for no thread in particular is nobody's.
    drop(head);
    let caller = Caller {
        thread: None,
        ..here()
    };
    let (head, _) = queues.join(&key(), Forever, ROUND, caller).head();
    head.set_key_expiry(from_now(LONG));
    assert_eq!(holder(), Some(None));
}

#[test]
fn a_lock_that_was_handed_off_is_not_bound_to_the_previous_thread() {
    let queues = queues(10, LONG);
    let first = alone(&queues);
    first.set_key_expiry(from_now(LONG));
    first.handle().bind_to_this_thread();
    thread::scope(|scope| {
        let next = scope.spawn(|| queues.join(&key(), Forever, ROUND, here()).head().0);
        while queues.lock().by_key[&key()].waiters.is_empty() {
            thread::yield_now();
        }
        first.hand_off(held_lock(1, from_now(LONG))).unwrap();
        let next = next.join().unwrap();
        next.set_key_expiry(from_now(LONG));
        drop(first);
        assert_ne!(
            queues.holder(&key()).map(|taker| taker.thread),
            Some(here().thread)
        );
        let soon = Wait::Until(from_now(5 * ROUND));
        assert!(matches!(
            queues.join(&key(), soon, ROUND, here()),
            Joined::TimedOut
        ));
    });
}

#[test]
fn threads_that_wait_are_counted_from_when_they_came_whether_they_ask_or_not() {
    let queues = queues(10, LONG);
    let since = || queues.waiting_since(|name| name == &*key());
    let began = clock::now();
    let head = alone(&queues);
    assert_eq!(since().len(), 1, "it asks the nodes");
    head.set_key_expiry(from_now(LONG));
    assert_eq!(since(), [], "it holds the lock");
    let first = join_in_thread(&queues, Forever, ROUND);
    let _second = join_in_thread(&queues, Forever, ROUND);
    let came = since();
    assert!(
        came.len() == 2 && came.is_sorted() && came[0] >= began,
        "{came:?}"
    );
    assert_eq!(queues.waiting_since(|name| name == b"other"), []);
    // The first now asks the nodes, and has not begun anew.
    drop(head);
    let first = promoted(&first).0;
    assert_eq!(since(), came);
    first.set_key_expiry(from_now(LONG));
    assert_eq!(since(), came[1..]);
}

#[test]
fn a_head_that_was_replaced_does_not_end_the_head_of_a_later_queue() {
    let queues = queues(10, LONG);
    let first = alone(&queues);
    // Its key has expired, so the next caller replaces it.
    first.set_key_expiry(clock::now());
    drop(alone(&queues));
    assert!(queues.lock().by_key.is_empty());
    let later = alone(&queues);
    later.handle().bind_to_this_thread();
    later.set_key_expiry(from_now(LONG));
    drop(first);
    assert!(matches!(
        queues.join(&key(), Forever, ROUND, here()),
        Joined::HeldByThisThread
    ));
}
