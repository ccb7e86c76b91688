//! Wait queues with threads in them: which waiter is promoted, with what, and when one leaves.

mod awaited;
mod cancel;
mod deadlines;
mod own;

use super::*;
use crate::cancel_token::CancelToken;
use crate::clock::{self, Time};
use crate::engine::Wait::{self, Forever};
use crate::engine::{HeldLock, NodeSet, Token, Ttl};
use crate::owner_process::OwnerProcess;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// For events that must happen, however slowly.
const LIMIT: Duration = Duration::from_secs(20);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(1_000);
/// The longest time that asking the nodes takes.
const ROUND: Duration = Duration::from_millis(20);

fn queues(count: u32, time: Duration) -> Arc<WaitQueues> {
    let limit = HandoffLimit { count, time };
    Arc::new(WaitQueues::new(
        limit,
        CancelToken::new(),
        Arc::new(OwnerProcess::here()),
    ))
}

fn key() -> Arc<[u8]> {
    Arc::from(&b"key"[..])
}

fn from_now(time: Duration) -> Time {
    clock::now().after(time)
}

/// A caller for its own thread.
fn here() -> Caller<'static> {
    Caller {
        token: None,
        thread: Some(thread::current().id()),
        started: None,
    }
}

/// A lock with this token that is valid until then.
fn held_lock(token: u8, valid_until: Time) -> HeldLock {
    let ttl = Ttl::from_duration(Duration::from_secs(10)).unwrap();
    HeldLock {
        key: key(),
        token: Token::new([token; Token::LEN]),
        attributes: None,
        fence: None,
        valid_until,
        since: clock::now(),
        ttl,
        ttl_longest: ttl,
        nodes: NodeSet::all(3),
        waiter: None,
        is_awaited: false,
        session: None,
    }
}

fn token(held: Option<&HeldLock>) -> Option<u8> {
    held.map(|held| held.token.as_bytes()[0])
}

impl Joined {
    fn head(self) -> (QueueHead, Option<HeldLock>) {
        match self {
            Self::Head(head, held) => (head, held),
            Self::NotQueued => panic!("not queued"),
            Self::TimedOut => panic!("timed out"),
            Self::Cancelled => panic!("cancelled"),
            Self::HeldByThisThread => panic!("held by this thread"),
        }
    }
}

/// Becomes the head of an empty queue.
fn alone(queues: &Arc<WaitQueues>) -> QueueHead {
    let (head, held) = queues.join(&key(), Forever, ROUND, here()).head();
    assert!(held.is_none() && !head.is_after_limit());
    head
}

fn waiting(queues: &WaitQueues) -> usize {
    queues
        .lock()
        .by_key
        .get(&key())
        .map_or(0, |queue| queue.waiters.len())
}

#[track_caller]
fn eventually(mut condition: impl FnMut() -> bool) {
    let end = from_now(LIMIT);
    while !condition() {
        assert!(clock::now() < end, "the condition never held");
        thread::sleep(Duration::from_micros(100));
    }
}

/// Joins in a thread of its own, and returns when that thread waits (or never will).
fn join_in_thread(queues: &Arc<WaitQueues>, wait: Wait, round: Duration) -> Receiver<Joined> {
    join_with(queues, wait, round, None)
}

/// The same, with a token of its own.
fn join_with(
    queues: &Arc<WaitQueues>,
    wait: Wait,
    round: Duration,
    own: Option<CancelToken>,
) -> Receiver<Joined> {
    let (sender, receiver) = mpsc::channel();
    let before = waiting(queues);
    let thread = {
        let queues = Arc::clone(queues);
        thread::spawn(move || {
            let caller = Caller {
                token: own.as_ref(),
                ..here()
            };
            drop(sender.send(queues.join(&key(), wait, round, caller)));
        })
    };
    eventually(|| waiting(queues) > before || thread.is_finished());
    receiver
}

/// The waiter that is promoted, now or soon.
#[track_caller]
fn promoted(receiver: &Receiver<Joined>) -> (QueueHead, Option<HeldLock>) {
    receiver.recv_timeout(LIMIT).expect("it is promoted").head()
}

#[test]
fn the_first_to_join_is_the_head_at_once_even_without_time_to_wait() {
    let queues = queues(9, LONG);
    let until = Wait::Until;
    for wait in [
        Forever,
        Wait::No,
        until(clock::now()),
        until(from_now(LONG)),
    ] {
        let (head, held) = queues.join(&key(), wait, ROUND, here()).head();
        assert!(held.is_none() && !head.is_after_limit());
    }
    assert!(queues.lock().by_key.is_empty());
}

#[test]
fn a_lock_is_handed_to_the_first_waiter_and_then_to_the_next() {
    let queues = queues(9, LONG);
    let first = alone(&queues);
    first.set_key_expiry(from_now(LONG));
    let second = join_in_thread(&queues, Forever, ROUND);
    let third = join_in_thread(&queues, Forever, ROUND);
    assert!(first.hand_off(held_lock(1, from_now(LONG))).is_ok());
    drop(first);
    let (second, taken) = promoted(&second);
    assert_eq!(token(taken.as_ref()), Some(1));
    assert!(third.try_recv().is_err(), "only one waiter is promoted");
    second.set_key_expiry(from_now(LONG));
    assert!(second.hand_off(held_lock(2, from_now(LONG))).is_ok());
    assert_eq!(token(promoted(&third).1.as_ref()), Some(2));
}

#[test]
fn a_lock_is_returned_if_no_thread_waits() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    assert_eq!(
        token(head.hand_off(held_lock(7, from_now(LONG))).as_ref().err()),
        Some(7)
    );
}

#[test]
fn an_expired_lock_is_not_handed_off() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    head.set_key_expiry(from_now(LONG));
    let next = join_in_thread(&queues, Forever, ROUND);
    assert!(head.hand_off(held_lock(1, clock::now())).is_err());
    assert!(next.try_recv().is_err());
    drop(head);
    let (head, taken) = promoted(&next);
    assert!(taken.is_none() && !head.is_after_limit());
}

#[test]
fn dropping_the_head_promotes_the_next_waiter_without_a_lock() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    let next = join_in_thread(&queues, Forever, ROUND);
    let last = join_in_thread(&queues, Forever, ROUND);
    drop(head);
    let (head, taken) = promoted(&next);
    assert!(taken.is_none() && !head.is_after_limit());
    assert!(last.try_recv().is_err());
    drop(head);
    drop(promoted(&last));
    assert!(queues.lock().by_key.is_empty());
}

#[test]
fn at_the_handoff_limit_the_lock_is_returned_and_the_next_head_knows_why() {
    for (count, time) in [(2, LONG), (9, Duration::from_millis(1))] {
        let queues = queues(count, time);
        let mut head = alone(&queues);
        head.set_key_expiry(from_now(LONG));
        let mut handoffs = 0;
        let next = loop {
            let next = join_in_thread(&queues, Forever, ROUND);
            // As long as the time limit needs, and too short for the other one to matter.
            thread::sleep(time.min(Duration::from_millis(2)));
            if head.hand_off(held_lock(1, from_now(LONG))).is_err() {
                break next;
            }
            handoffs += 1;
            assert!(handoffs <= count, "more than {count} handoffs");
            head = promoted(&next).0;
            head.set_key_expiry(from_now(LONG));
        };
        assert_eq!(handoffs, if time == LONG { count } else { 0 });
        drop(head);
        let (head, taken) = promoted(&next);
        assert!(taken.is_none());
        assert!(
            head.is_after_limit(),
            "other processes must get a chance: {count} {time:?}"
        );
        // The nodes were asked again: the lock may be handed off again.
        head.set_key_expiry(from_now(LONG));
        let _next = join_in_thread(&queues, Forever, ROUND);
        assert!(time < LONG || head.hand_off(held_lock(2, from_now(LONG))).is_ok());
    }
}

#[test]
fn with_a_limit_of_zero_no_lock_is_handed_off() {
    for (count, time) in [(0, LONG), (9, Duration::ZERO)] {
        let queues = queues(count, time);
        let head = alone(&queues);
        head.set_key_expiry(from_now(LONG));
        let next = join_in_thread(&queues, Forever, ROUND);
        assert!(head.hand_off(held_lock(1, from_now(LONG))).is_err());
        drop(head);
        assert!(promoted(&next).0.is_after_limit());
    }
}

#[test]
fn the_time_limit_counts_from_the_grant_not_from_the_request() {
    let queues = queues(9, Duration::from_secs(5));
    let head = alone(&queues);
    // It took long to get it, because another process held it.
    queues.lock().by_key.get_mut(&key()).unwrap().granted_at = Time::ZERO;
    head.set_key_expiry(from_now(LONG));
    let next = join_in_thread(&queues, Forever, ROUND);
    assert!(head.hand_off(held_lock(1, from_now(LONG))).is_ok());
    assert_eq!(token(promoted(&next).1.as_ref()), Some(1));
}

#[test]
fn a_head_that_got_no_lock_does_not_count_for_the_limit() {
    let queues = queues(9, Duration::from_millis(1));
    let head = alone(&queues);
    let next = join_in_thread(&queues, Forever, ROUND);
    thread::sleep(Duration::from_millis(3));
    drop(head);
    assert!(!promoted(&next).0.is_after_limit());
}

#[test]
fn an_empty_queue_takes_no_memory() {
    let queues = queues(9, LONG);
    for number in 0..10_000 {
        let key: Arc<[u8]> = Arc::from(format!("key-{number}").into_bytes());
        let (head, _) = queues.join(&key, Forever, ROUND, here()).head();
        head.set_key_expiry(from_now(LONG));
        assert!(matches!(
            queues.join(&key, Wait::Until(Time::ZERO), ROUND, here()),
            Joined::NotQueued
        ));
        let soon = from_now(Duration::from_micros(10));
        assert!(!matches!(
            queues.join(&key, Wait::Until(soon), ROUND, here()),
            Joined::Head(..)
        ));
        assert_eq!(queues.lock().by_key.len(), 1);
    }
    assert!(queues.lock().by_key.is_empty());
}

#[test]
fn a_head_that_does_not_come_back_is_replaced_when_its_key_has_expired() {
    let queues = queues(9, LONG);
    let leaked = alone(&queues);
    let second = join_in_thread(&queues, Forever, ROUND);
    let third = join_in_thread(&queues, Forever, ROUND);
    assert!(second.try_recv().is_err());
    // The expiry is known only now: the first waiter must take it into account.
    leaked.set_key_expiry(from_now(Duration::from_millis(30)));
    let (second, taken) = promoted(&second);
    assert!(taken.is_none());
    // Later calls of the old head change nothing.
    leaked.set_key_expiry(Time::ZERO);
    assert!(leaked.hand_off(held_lock(1, from_now(LONG))).is_err());
    drop(leaked);
    assert!(third.recv_timeout(Duration::from_millis(30)).is_err());
    second.set_key_expiry(from_now(LONG));
    assert!(second.hand_off(held_lock(2, from_now(LONG))).is_ok());
    assert_eq!(token(promoted(&third).1.as_ref()), Some(2));
}

#[test]
fn an_extension_keeps_waiters_waiting() {
    let queues = queues(9, LONG);
    let head = alone(&queues);
    let old = from_now(Duration::from_millis(30));
    head.set_key_expiry(old);
    let next = join_in_thread(&queues, Forever, ROUND);
    head.set_key_expiry(from_now(LONG));
    eventually(|| clock::now() > old);
    assert!(next.recv_timeout(Duration::from_millis(30)).is_err());
}
