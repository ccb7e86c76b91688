//! How long a thread waits in a queue, and how that ends.

use super::*;

/// Has the head of the queue wait for this long already.
fn have_head_wait(queues: &WaitQueues, time: Duration) {
    let mut all = queues.lock();
    let head = all.by_key.get_mut(&key()).unwrap().head.as_mut().unwrap();
    head.since = clock::now().before(time);
}

#[test]
fn a_caller_that_does_not_wait_asks_the_nodes_itself() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    for is_held in [false, true] {
        if is_held {
            head.set_key_expiry(from_now(LONG));
        }
        for deadline in [Time::ZERO, clock::now()] {
            assert!(matches!(
                queues.join(&key(), Wait::Until(deadline), ROUND, here()),
                Joined::NotQueued
            ));
        }
    }
    assert_eq!(waiting(&queues), 0);
}

#[test]
fn behind_a_lock_that_is_held_a_wait_ends_at_its_deadline() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    // A round may be shorter or longer than the wait.
    for round in [ROUND, LONG] {
        let deadline = from_now(Duration::from_millis(50));
        assert!(matches!(
            queues.join(&key(), Wait::Until(deadline), round, here()),
            Joined::TimedOut
        ));
        assert!(clock::now() >= deadline);
    }
    assert_eq!(waiting(&queues), 0);
}

#[test]
fn behind_a_head_without_an_answer_a_wait_ends_a_round_early_to_ask_the_nodes() {
    let queues = queues(9, LONG);
    let _asking = alone(&queues);
    // The deadline is so far away that it is certain that this did not wait for it.
    let deadline = from_now(LONG);
    let round = Duration::from_millis(50);
    have_head_wait(&queues, LONG);
    assert!(matches!(
        queues.join(&key(), Wait::Until(deadline), LONG - round, here()),
        Joined::NotQueued
    ));
    assert!(clock::now() < deadline.before(LONG / 2));
    assert_eq!(waiting(&queues), 0);
}

#[test]
fn a_wait_shorter_than_a_round_keeps_its_place_behind_a_head_that_asks() {
    let queues = queues(9, LONG);
    let asking = alone(&queues);
    // Leaving because no round fits into the wait would give up a place for nothing: the head has
    // only begun to ask.
    let next = join_in_thread(
        &queues,
        Wait::Until(from_now(Duration::from_secs(10))),
        LONG,
    );
    assert_eq!(waiting(&queues), 1);
    asking.set_key_expiry(from_now(LONG));
    assert!(asking.hand_off(held_lock(1, from_now(LONG))).is_ok());
    assert_eq!(token(promoted(&next).1.as_ref()), Some(1));
}

#[test]
fn a_wait_shorter_than_a_round_still_ends() {
    let queues = queues(9, LONG);
    let _asking = alone(&queues);
    let deadline = from_now(Duration::from_millis(50));
    assert!(matches!(
        queues.join(&key(), Wait::Until(deadline), LONG, here()),
        Joined::NotQueued
    ));
    // With a quarter of it left, for asking the nodes.
    assert!(clock::now() >= deadline.before(Duration::from_millis(13)));
    assert_eq!(waiting(&queues), 0);
}

#[test]
fn leaving_while_being_promoted_loses_neither_the_lock_nor_the_queue() {
    const THREADS: u64 = 6;
    let queues = queues(50, LONG);
    let (sender, receiver) = mpsc::channel();
    for thread in 0..THREADS {
        let queues = Arc::clone(&queues);
        let sender = sender.clone();
        thread::spawn(move || {
            let mut heads = 0_u64;
            for round in 0..2_000 {
                let wait = Duration::from_micros((round * 7 + thread * 13) % 90);
                let joined =
                    queues.join(&key(), Wait::Until(from_now(wait)), Duration::ZERO, here());
                let Joined::Head(head, _) = joined else {
                    continue;
                };
                heads += 1;
                head.set_key_expiry(from_now(LONG));
                // Half of them hand the lock off, and half only leave.
                if round % 2 == 0 {
                    drop(head.hand_off(held_lock(1, from_now(LONG))));
                }
            }
            let _ = sender.send(heads);
        });
    }
    let heads: u64 = (0..THREADS)
        .map(|_| receiver.recv_timeout(3 * LIMIT).unwrap())
        .sum();
    assert!(heads > 0);
    eventually(|| queues.lock().by_key.is_empty());
    drop(alone(&queues));
}

#[test]
fn a_wait_behind_a_lock_that_is_handed_off_ends_at_its_deadline() {
    let queues = queues(9, LONG);
    let round = Duration::from_secs(1);
    let wait = Duration::from_secs(2);
    let first = alone(&queues);
    first.set_key_expiry(from_now(LONG));
    let next = join_in_thread(&queues, Forever, round);
    let deadline = from_now(wait);
    let waiting = join_in_thread(&queues, Wait::Until(deadline), round);
    // After the time at which it would leave to ask the nodes.
    thread::sleep(deadline.before(round / 2).since(clock::now()));
    first
        .hand_off(held_lock(1, from_now(LONG)))
        .expect("there is a waiter");
    // The next head replaces the token on the nodes when the deadline comes.
    let (next, _) = promoted(&next);
    let ended = waiting
        .recv_timeout(LIMIT)
        .expect("its deadline ends the wait");
    assert!(
        matches!(ended, Joined::TimedOut),
        "there is no time to ask the nodes"
    );
    drop((first, next));
}

#[test]
fn behind_a_lock_that_another_client_holds_a_wait_ends_at_its_deadline() {
    let queues = queues(9, LONG);
    let asking = alone(&queues);
    have_head_wait(&queues, LONG);
    asking.handle().set_held_elsewhere(Some(from_now(LONG)));
    for round in [ROUND, LONG] {
        let deadline = from_now(Duration::from_millis(50));
        assert!(matches!(
            queues.join(&key(), Wait::Until(deadline), round, here()),
            Joined::TimedOut
        ));
        assert!(clock::now() >= deadline);
    }
    // What the nodes said long ago does not count, nor what they said before they fell silent.
    for until in [Some(clock::now()), None] {
        asking.handle().set_held_elsewhere(until);
        let deadline = from_now(LONG);
        let round = LONG - Duration::from_millis(50);
        assert!(matches!(
            queues.join(&key(), Wait::Until(deadline), round, here()),
            Joined::NotQueued
        ));
    }
}

#[test]
fn when_the_first_waiter_leaves_the_second_watches_the_clock() {
    let queues = queues(9, LONG);
    let leaked = alone(&queues);
    let until = from_now(Duration::from_millis(800));
    leaked.set_key_expiry(until);
    let first = join_in_thread(
        &queues,
        Wait::Until(from_now(Duration::from_millis(300))),
        ROUND,
    );
    let second = join_in_thread(&queues, Forever, ROUND);
    assert!(matches!(
        first.recv_timeout(LIMIT).unwrap(),
        Joined::TimedOut
    ));
    assert!(promoted(&second).1.is_none());
    assert!(clock::now() >= until);
}
