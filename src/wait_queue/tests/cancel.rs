//! Waits that are cancelled.

use super::*;

/// Cancels all waits of the client.
fn cancel_all(queues: &WaitQueues) {
    // It knows no client here that it could wake.
    queues.token.cancel();
    queues.wake_cancelled(&queues.token);
}

#[test]
fn cancelling_ends_every_wait_in_every_queue_and_leaves_the_heads() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    let waits = [Forever, Wait::Until(from_now(LONG)), Forever];
    let waiters = waits.map(|wait| join_in_thread(&queues, wait, ROUND));
    assert_eq!(waiting(&queues), 3);
    cancel_all(&queues);
    for waiter in waiters {
        assert!(matches!(waiter.recv_timeout(LIMIT), Ok(Joined::Cancelled)));
    }
    assert_eq!(waiting(&queues), 0);
    // Later waits end at once. The head is still the head, and gives its place up as ever.
    assert!(matches!(
        queues.join(&key(), Forever, ROUND, here()),
        Joined::Cancelled
    ));
    assert!(head.hand_off(held_lock(1, from_now(LONG))).is_err());
    drop(head);
    assert!(queues.lock().by_key.is_empty());
}

#[test]
fn a_waiter_that_was_handed_the_lock_before_it_is_cancelled_gets_it() {
    // It has to give the lock back, and so it has to know of it.
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    let next = join_in_thread(&queues, Forever, ROUND);
    let held = queues.lock();
    let waiter = Arc::clone(&held.by_key[&key()].waiters[&1]);
    drop(held);
    head.hand_off(held_lock(1, from_now(LONG))).unwrap();
    cancel_all(&queues);
    waiter.wake();
    let (_, held) = next.recv_timeout(LIMIT).unwrap().head();
    assert_eq!(token(held.as_ref()), Some(1));
}

#[test]
fn a_token_ends_the_waits_that_have_it_and_the_others_keep_their_order() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    let own = CancelToken::new();
    let unused = CancelToken::new();
    let tokens = [
        Some(own.clone()),
        None,
        Some(own.clone()),
        Some(unused),
        None,
    ];
    let mut waiters = tokens
        .map(|token| join_with(&queues, Forever, ROUND, token))
        .into_iter()
        .enumerate();
    own.cancel();
    queues.wake_cancelled(&own);
    let mut left = Vec::new();
    for (index, waiter) in &mut waiters {
        if [0, 2].contains(&index) {
            assert!(
                matches!(waiter.recv_timeout(LIMIT), Ok(Joined::Cancelled)),
                "{index}"
            );
        } else {
            left.push(waiter);
        }
    }
    assert_eq!(waiting(&queues), 3);
    assert_eq!(
        queues.lock().cancellable.all().count(),
        1,
        "the one that has a token"
    );
    // A wait that begins with a cancelled token ends at once, and waits for nothing.
    assert!(matches!(
        queues.join(
            &key(),
            Forever,
            ROUND,
            Caller {
                token: Some(&own),
                ..here()
            }
        ),
        Joined::Cancelled
    ));
    let mut before = head;
    for (number, waiter) in (1..).zip(left) {
        assert!(waiter.try_recv().is_err(), "it is not its turn");
        assert!(before.hand_off(held_lock(number, from_now(LONG))).is_ok());
        let (next, taken) = promoted(&waiter);
        assert_eq!(token(taken.as_ref()), Some(number));
        next.set_key_expiry(from_now(LONG));
        before = next;
    }
    assert_eq!(queues.lock().cancellable.all().count(), 0, "none waits");
}

#[test]
fn the_second_watches_the_clock_when_the_first_waiter_is_cancelled() {
    let queues = queues(9, LONG);
    let leaked = alone(&queues);
    leaked.set_key_expiry(from_now(Duration::from_millis(300)));
    let own = CancelToken::new();
    let first = join_with(&queues, Forever, ROUND, Some(own.clone()));
    let second = join_in_thread(&queues, Forever, ROUND);
    own.cancel();
    queues.wake_cancelled(&own);
    assert!(matches!(first.recv_timeout(LIMIT), Ok(Joined::Cancelled)));
    assert!(promoted(&second).1.is_none());
}
