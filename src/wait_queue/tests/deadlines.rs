//! How long one who waits in a line waits, and how that ends.

use super::*;

#[test]
fn who_does_not_wait_is_told_to_ask_for_itself() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    for is_held in [false, true] {
        if is_held {
            place.set_key_expiry(from_now(LONG));
        }
        for deadline in [Time::ZERO, clock::now()] {
            assert!(matches!(lines.join(&key(), Some(deadline), ROUND), Joined::NotQueued));
        }
    }
    assert_eq!(waiting(&lines), 0);
}

#[test]
fn behind_a_lock_that_is_held_a_wait_ends_at_its_deadline() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    place.set_key_expiry(from_now(LONG));
    // A round may be shorter or longer than the wait.
    for round in [ROUND, LONG] {
        let deadline = from_now(Duration::from_millis(50));
        assert!(matches!(lines.join(&key(), Some(deadline), round), Joined::TimedOut));
        assert!(clock::now() >= deadline);
    }
    assert_eq!(waiting(&lines), 0);
}

#[test]
fn behind_one_who_gets_no_answer_a_wait_ends_a_round_early_to_see_for_itself() {
    let lines = lines(9, LONG);
    let _asking = alone(&lines);
    // The deadline is so far away that it is certain that this did not wait for it.
    let (deadline, round) = (from_now(LONG), Duration::from_millis(50));
    let asked_long_ago = clock::now().before(LONG);
    lines.lock().get_mut(&key()).unwrap().head.as_mut().unwrap().since = asked_long_ago;
    assert!(matches!(lines.join(&key(), Some(deadline), LONG - round), Joined::NotQueued));
    assert!(clock::now() < deadline.before(LONG / 2));
    assert_eq!(waiting(&lines), 0);
}

#[test]
fn a_wait_that_is_shorter_than_a_round_keeps_its_place_behind_one_who_asks() {
    let lines = lines(9, LONG);
    let asking = alone(&lines);
    // To leave the line only because a round does not fit into the wait would be to give up a place
    // in it for nothing: the one who asks has only begun.
    let next = queue(&lines, Some(from_now(Duration::from_secs(10))), LONG);
    assert_eq!(waiting(&lines), 1);
    asking.set_key_expiry(from_now(LONG));
    assert!(asking.hand_off(lease(1, from_now(LONG))).is_ok());
    assert_eq!(token(called(&next).1.as_ref()), Some(1));
}

#[test]
fn a_wait_that_is_shorter_than_a_round_ends_all_the_same() {
    let lines = lines(9, LONG);
    let _asking = alone(&lines);
    let deadline = from_now(Duration::from_millis(50));
    assert!(matches!(lines.join(&key(), Some(deadline), LONG), Joined::NotQueued));
    // With a quarter of it left, for asking the nodes.
    assert!(clock::now() >= deadline.before(Duration::from_millis(13)));
    assert_eq!(waiting(&lines), 0);
}

#[test]
fn giving_up_while_being_called_loses_neither_the_lock_nor_the_line() {
    const THREADS: u64 = 6;
    let lines = lines(50, LONG);
    let (sender, receiver) = mpsc::channel();
    for thread in 0..THREADS {
        let (lines, sender) = (Arc::clone(&lines), sender.clone());
        thread::spawn(move || {
            let mut heads = 0_u64;
            for round in 0..2_000 {
                let wait = Duration::from_micros((round * 7 + thread * 13) % 90);
                let joined = lines.join(&key(), Some(from_now(wait)), Duration::ZERO);
                let Joined::Head(place, _) = joined else { continue };
                heads += 1;
                place.set_key_expiry(from_now(LONG));
                // Half of them hand the lock on, and half only leave.
                if round % 2 == 0 {
                    drop(place.hand_off(lease(1, from_now(LONG))));
                }
            }
            let _ = sender.send(heads);
        });
    }
    let heads: u64 = (0..THREADS).map(|_| receiver.recv_timeout(3 * LIMIT).unwrap()).sum();
    assert!(heads > 0);
    eventually(|| lines.lock().is_empty());
    drop(alone(&lines));
}
