//! Waits that are cancelled.

use super::*;

#[test]
fn cancelling_ends_every_wait_in_every_queue_and_leaves_the_heads() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    let waits = [Forever, Wait::Until(from_now(LONG)), Forever];
    let waiters = waits.map(|wait| join_in_thread(&queues, wait, ROUND));
    assert_eq!(waiting(&queues), 3);
    queues.cancel();
    for waiter in waiters {
        assert!(matches!(waiter.recv_timeout(LIMIT), Ok(Joined::Cancelled)));
    }
    assert_eq!(waiting(&queues), 0);
    // Later waits end at once. The head is still the head, and gives its place up as ever.
    assert!(matches!(queues.join(&key(), Forever, ROUND), Joined::Cancelled));
    assert!(head.hand_off(lease(1, from_now(LONG))).is_err());
    drop(head);
    assert!(queues.lock().is_empty());
}

#[test]
fn a_waiter_that_was_handed_the_lock_before_it_is_cancelled_gets_it() {
    // It has to give the lock back, and so it has to know of it.
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    let next = join_in_thread(&queues, Forever, ROUND);
    let held = queues.lock();
    let waiter = Arc::clone(&held[&key()].waiters[0]);
    drop(held);
    head.hand_off(lease(1, from_now(LONG))).unwrap();
    queues.cancel();
    waiter.wake();
    let (_, lease) = next.recv_timeout(LIMIT).unwrap().head();
    assert_eq!(token(lease.as_ref()), Some(1));
}
