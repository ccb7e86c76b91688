//! How long one who waits in a line waits, and how that ends.

use super::*;

#[test]
fn who_does_not_wait_is_told_to_ask_for_itself() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    for is_held in [false, true] {
        if is_held {
            place.hold(from_now(LONG));
        }
        for deadline in [Time::ZERO, clock::now()] {
            assert!(matches!(lines.join(&key(), Some(deadline), ROUND), Joined::Outside));
        }
    }
    assert_eq!(waiting(&lines), 0);
}

#[test]
fn behind_a_lock_that_is_held_a_wait_ends_at_its_deadline() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    place.hold(from_now(LONG));
    // A round may be shorter or longer than the wait.
    for round in [ROUND, LONG] {
        let deadline = from_now(Duration::from_millis(50));
        assert!(matches!(lines.join(&key(), Some(deadline), round), Joined::TimedOut));
        assert!(clock::now() >= deadline);
    }
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
                place.hold(from_now(LONG));
                // Half of them hand the lock on, and half only leave.
                if round % 2 == 0 {
                    drop(place.pass(lease(1, from_now(LONG))));
                }
            }
            drop(sender.send(heads));
        });
    }
    let heads: u64 = (0..THREADS).map(|_| receiver.recv_timeout(3 * LIMIT).unwrap()).sum();
    assert!(heads > 0);
    eventually(|| lines.lock().is_empty());
    drop(alone(&lines));
}
