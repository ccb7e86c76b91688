//! WaitQueues with threads in them: who is called, with what, and who leaves when.

mod deadlines;
mod own;

use super::*;
use crate::engine::{NodeSet, Token, Ttl};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// For what must happen and whose speed is no concern.
const LIMIT: Duration = Duration::from_secs(20);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(1_000);
/// How long asking the nodes takes at most.
const ROUND: Duration = Duration::from_millis(20);

fn lines(count: u32, time: Duration) -> Arc<WaitQueues> {
    Arc::new(WaitQueues::new(HandoffLimit { count, time }, Arc::new(OwnerProcess::here())))
}

fn key() -> Arc<[u8]> {
    Arc::from(&b"key"[..])
}

fn from_now(time: Duration) -> Time {
    clock::now().after(time)
}

/// A lock of this token that may be relied on until then.
fn lease(token: u8, valid_until: Time) -> Lease {
    let ttl = Ttl::from_duration(Duration::from_secs(10)).unwrap();
    Lease {
        key: key(),
        token: Token::new([token; Token::LEN]),
        extras: None,
        fence: None,
        valid_until,
        since: clock::now(),
        ttl,
        ttl_longest: ttl,
        nodes: NodeSet::all(3),
    }
}

fn token(lease: Option<&Lease>) -> Option<u8> {
    lease.map(|lease| lease.token.as_bytes()[0])
}

impl Joined {
    fn head(self) -> (QueueHead, Option<Lease>) {
        match self {
            Self::Head(place, lease) => (place, lease),
            Self::NotQueued => panic!("outside"),
            Self::TimedOut => panic!("timed out"),
            Self::HeldByThisThread => panic!("its own"),
        }
    }
}

/// Comes to the head of a line without anybody in it.
fn alone(lines: &Arc<WaitQueues>) -> QueueHead {
    let (place, lease) = lines.join(&key(), None, ROUND).head();
    assert!(lease.is_none() && !place.is_after_limit());
    place
}

fn waiting(lines: &WaitQueues) -> usize {
    lines.lock().get(&key()).map_or(0, |line| line.waiting.len())
}

#[track_caller]
fn eventually(mut condition: impl FnMut() -> bool) {
    let end = from_now(LIMIT);
    while !condition() {
        assert!(clock::now() < end, "it never came to that");
        thread::sleep(Duration::from_micros(100));
    }
}

/// Joins in a thread of its own, and comes back when it stands in line (or never will).
fn queue(lines: &Arc<WaitQueues>, deadline: Option<Time>, round: Duration) -> Receiver<Joined> {
    let (sender, receiver) = mpsc::channel();
    let before = waiting(lines);
    let thread = {
        let lines = Arc::clone(lines);
        thread::spawn(move || drop(sender.send(lines.join(&key(), deadline, round))))
    };
    eventually(|| waiting(lines) > before || thread.is_finished());
    receiver
}

/// The one that is called, now or soon.
#[track_caller]
fn called(receiver: &Receiver<Joined>) -> (QueueHead, Option<Lease>) {
    receiver.recv_timeout(LIMIT).expect("it is called").head()
}

#[test]
fn who_comes_alone_is_at_the_head_at_once_even_without_time() {
    let lines = lines(9, LONG);
    for deadline in [None, Some(Time::ZERO), Some(clock::now()), Some(from_now(LONG))] {
        let (place, lease) = lines.join(&key(), deadline, ROUND).head();
        assert!(lease.is_none() && !place.is_after_limit());
    }
    assert!(lines.lock().is_empty());
}

#[test]
fn a_lock_is_passed_to_the_first_in_line_and_by_that_one_to_the_next() {
    let lines = lines(9, LONG);
    let first = alone(&lines);
    first.set_key_expiry(from_now(LONG));
    let (second, third) = (queue(&lines, None, ROUND), queue(&lines, None, ROUND));
    assert!(first.hand_off(lease(1, from_now(LONG))).is_ok());
    drop(first);
    let (second, taken) = called(&second);
    assert_eq!(token(taken.as_ref()), Some(1));
    assert!(third.try_recv().is_err(), "it is not this one's turn");
    second.set_key_expiry(from_now(LONG));
    assert!(second.hand_off(lease(2, from_now(LONG))).is_ok());
    assert_eq!(token(called(&third).1.as_ref()), Some(2));
}

#[test]
fn a_lock_comes_back_if_nobody_waits_for_it() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    place.set_key_expiry(from_now(LONG));
    assert_eq!(token(place.hand_off(lease(7, from_now(LONG))).as_ref().err()), Some(7));
}

#[test]
fn a_lock_whose_validity_has_passed_is_not_handed_on() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    place.set_key_expiry(from_now(LONG));
    let next = queue(&lines, None, ROUND);
    assert!(place.hand_off(lease(1, clock::now())).is_err());
    assert!(next.try_recv().is_err());
    drop(place);
    let (place, taken) = called(&next);
    assert!(taken.is_none() && !place.is_after_limit());
}

#[test]
fn a_place_that_is_dropped_calls_the_next_who_asks_the_nodes() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    let (next, last) = (queue(&lines, None, ROUND), queue(&lines, None, ROUND));
    drop(place);
    let (place, taken) = called(&next);
    assert!(taken.is_none() && !place.is_after_limit());
    assert!(last.try_recv().is_err());
    drop(place);
    drop(called(&last));
    assert!(lines.lock().is_empty());
}

#[test]
fn when_a_limit_is_reached_the_lock_comes_back_and_the_next_knows_why() {
    for (count, time) in [(2, LONG), (9, Duration::from_millis(1))] {
        let lines = lines(count, time);
        let mut place = alone(&lines);
        place.set_key_expiry(from_now(LONG));
        let mut handoffs = 0;
        let next = loop {
            let next = queue(&lines, None, ROUND);
            // As long as the limit of time needs, and too short for the other one to matter.
            thread::sleep(time.min(Duration::from_millis(2)));
            if place.hand_off(lease(1, from_now(LONG))).is_err() {
                break next;
            }
            handoffs += 1;
            assert!(handoffs <= count, "more than {count} handoffs");
            place = called(&next).0;
            place.set_key_expiry(from_now(LONG));
        };
        assert_eq!(handoffs, if time == LONG { count } else { 0 });
        drop(place);
        let (place, taken) = called(&next);
        assert!(taken.is_none());
        assert!(place.is_after_limit(), "others must get their chance: {count} {time:?}");
        // The nodes have been asked anew: it may be handed on again.
        place.set_key_expiry(from_now(LONG));
        let _next = queue(&lines, None, ROUND);
        assert!(time < LONG || place.hand_off(lease(2, from_now(LONG))).is_ok());
    }
}

#[test]
fn with_a_limit_of_zero_nothing_is_handed_on_and_others_get_their_chance() {
    for (count, time) in [(0, LONG), (9, Duration::ZERO)] {
        let lines = lines(count, time);
        let place = alone(&lines);
        place.set_key_expiry(from_now(LONG));
        let next = queue(&lines, None, ROUND);
        assert!(place.hand_off(lease(1, from_now(LONG))).is_err());
        drop(place);
        assert!(called(&next).0.is_after_limit());
    }
}

#[test]
fn the_time_limit_counts_from_when_the_lock_was_got_not_asked_for() {
    let lines = lines(9, Duration::from_secs(5));
    let place = alone(&lines);
    // It took long to get it, because another process held it.
    lines.lock().get_mut(&key()).unwrap().taken_at = Time::ZERO;
    place.set_key_expiry(from_now(LONG));
    let next = queue(&lines, None, ROUND);
    assert!(place.hand_off(lease(1, from_now(LONG))).is_ok());
    assert_eq!(token(called(&next).1.as_ref()), Some(1));
}

#[test]
fn who_got_no_lock_has_kept_nobody_from_it() {
    let lines = lines(9, Duration::from_millis(1));
    let place = alone(&lines);
    let next = queue(&lines, None, ROUND);
    thread::sleep(Duration::from_millis(3));
    drop(place);
    assert!(!called(&next).0.is_after_limit());
}

#[test]
fn a_line_without_anybody_in_it_takes_no_memory() {
    let lines = lines(9, LONG);
    for number in 0..10_000 {
        let key: Arc<[u8]> = Arc::from(format!("key-{number}").into_bytes());
        let (place, _) = lines.join(&key, None, ROUND).head();
        place.set_key_expiry(from_now(LONG));
        assert!(matches!(lines.join(&key, Some(Time::ZERO), ROUND), Joined::NotQueued));
        let soon = from_now(Duration::from_micros(10));
        assert!(!matches!(lines.join(&key, Some(soon), ROUND), Joined::Head(..)));
        assert_eq!(lines.lock().len(), 1);
    }
    assert!(lines.lock().is_empty());
}

#[test]
fn a_head_that_does_not_come_back_is_replaced_when_its_time_has_passed() {
    let lines = lines(9, LONG);
    let leaked = alone(&lines);
    let (second, third) = (queue(&lines, None, ROUND), queue(&lines, None, ROUND));
    assert!(second.try_recv().is_err());
    // What is held is known only now: the first in line must hear of it.
    leaked.set_key_expiry(from_now(Duration::from_millis(30)));
    let (second, taken) = called(&second);
    assert!(taken.is_none());
    // What it does after that changes nothing.
    leaked.set_key_expiry(Time::ZERO);
    assert!(leaked.hand_off(lease(1, from_now(LONG))).is_err());
    drop(leaked);
    assert!(third.recv_timeout(Duration::from_millis(30)).is_err());
    second.set_key_expiry(from_now(LONG));
    assert!(second.hand_off(lease(2, from_now(LONG))).is_ok());
    assert_eq!(token(called(&third).1.as_ref()), Some(2));
}

#[test]
fn an_extension_keeps_those_in_line_waiting() {
    let lines = lines(9, LONG);
    let place = alone(&lines);
    let old = from_now(Duration::from_millis(30));
    place.set_key_expiry(old);
    let next = queue(&lines, None, ROUND);
    place.set_key_expiry(from_now(LONG));
    eventually(|| clock::now() > old);
    assert!(next.recv_timeout(Duration::from_millis(30)).is_err());
}

#[test]
fn when_the_first_gives_up_the_second_watches_the_clock() {
    let lines = lines(9, LONG);
    let leaked = alone(&lines);
    let until = from_now(Duration::from_millis(800));
    leaked.set_key_expiry(until);
    let first = queue(&lines, Some(from_now(Duration::from_millis(300))), ROUND);
    let second = queue(&lines, None, ROUND);
    assert!(matches!(first.recv_timeout(LIMIT).unwrap(), Joined::TimedOut));
    assert!(called(&second).1.is_none());
    assert!(clock::now() >= until);
}
