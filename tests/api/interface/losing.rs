//! Losing a lock: its holder is told once, in time, and no other lock is affected.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard, LossReason};
use support::backend::Backend;
use support::journal::names;
use support::loss::{loss, loss_in, reason};
use support::on_each_backend;

use super::{LIMIT, LONG, SHORT, end_by_force, is_taken, take, take_next};

/// The ttl of a lock whose loss is waited for.
const BRIEF: Duration = Duration::from_millis(500);

on_each_backend!(
    each_callback_is_called_once_and_not_before_the_end,
    no_loss_is_told_of_a_lock_that_was_released_before,
    wait_lost_returns_at_the_loss_or_after_its_limit,
    a_loss_that_its_holder_finds_is_told_at_once,
    the_loss_of_a_lock_that_is_kept_alive_is_told,
    losses_are_reported_once_as_events,
    an_operator_ends_the_lock_that_was_seen_and_no_later_one,
    one_thread_calls_all_callbacks,
    a_callback_that_blocks_delays_the_next_callback_but_no_extension,
    callbacks_may_panic_take_the_lock_and_drop_guards_and_clients,
);

/// A lock that is kept alive.
#[track_caller]
fn keep(client: &LockClient, name: &str, ttl: Duration) -> LockGuard {
    client
        .request(name)
        .ttl(ttl)
        .keep_alive()
        .try_lock()
        .unwrap()
        .expect("nobody has it")
}

/// What each call of `on_lost` is told, and when.
fn watch(guard: &LockGuard) -> Receiver<(LossReason, Instant)> {
    let (tell, told) = channel();
    guard
        .on_lost(move |lost| _ = tell.send((lost.reason(), Instant::now())))
        .unwrap();
    told
}

/// The callback was called, and then dropped: it cannot be called again.
#[track_caller]
fn called_once(told: &Receiver<(LossReason, Instant)>, expected: LossReason) -> Instant {
    let (reason, at) = told.recv_timeout(LIMIT).unwrap();
    assert_eq!(reason, expected);
    assert_not_called(told);
    at
}

/// The callback was dropped without a call.
#[track_caller]
fn assert_not_called(told: &Receiver<(LossReason, Instant)>) {
    assert_eq!(
        told.recv_timeout(LIMIT),
        Err(RecvTimeoutError::Disconnected)
    );
}

fn each_callback_is_called_once_and_not_before_the_end(backend: &Backend) {
    let client = backend.client();
    let mut lock = client.lock("told", SHORT).unwrap();
    let told = [watch(&lock), watch(&lock)];
    // The holder's own extensions count.
    lock.extend(2 * SHORT).unwrap();
    let end = Instant::now() + lock.remaining();
    for told in told {
        assert!(called_once(&told, LossReason::Expired) + Duration::from_millis(5) >= end);
    }
    // A callback that is set only now is called at once.
    called_once(&watch(&lock), LossReason::Expired);
    assert_eq!(loss_in(lock.extend(LONG)), Some(LossReason::Expired));
}

fn no_loss_is_told_of_a_lock_that_was_released_before(backend: &Backend) {
    let client = backend.client();
    let ways: [fn(LockGuard); 2] = [drop, |guard| assert_eq!(guard.release(), Ok(()))];
    for give_up in ways {
        for guard in [keep(&client, "kept", SHORT), take(&client, "plain")] {
            let told = watch(&guard);
            give_up(guard);
            assert_not_called(&told);
        }
    }
}

fn wait_lost_returns_at_the_loss_or_after_its_limit(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let kept = keep(&client, "kept", SHORT);
    let plain = client.lock("plain", SHORT).unwrap();
    let began = Instant::now();
    assert_eq!(kept.wait_lost(2 * SHORT), None);
    assert!(began.elapsed() >= 2 * SHORT, "it waits for its whole limit");
    assert_eq!(
        plain.wait_lost(Duration::MAX).map(reason),
        Some(LossReason::Expired)
    );
    assert_eq!(
        take(&client, "again").wait_lost(Duration::from_millis(1)),
        None
    );
    thread::scope(|scope| {
        let waiting = scope.spawn(|| kept.wait_lost(Duration::MAX).map(reason));
        end_by_force(&other, "kept");
        assert_eq!(waiting.join().unwrap(), Some(LossReason::Gone));
    });
}

fn a_loss_that_its_holder_finds_is_told_at_once(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let guards = [take(&client, "plain"), keep(&client, "kept", LONG)];
    for (mut guard, name) in guards.into_iter().zip(["plain", "kept"]) {
        let told = watch(&guard);
        end_by_force(&other, name);
        let next = take_next(&other, name);
        assert_eq!(
            loss_in(guard.extend(LONG)),
            Some(LossReason::Gone),
            "{name}"
        );
        assert_eq!(
            (loss(&guard), guard.remaining()),
            (Some(LossReason::Gone), Duration::ZERO)
        );
        called_once(&told, LossReason::Gone);
        called_once(&watch(&guard), LossReason::Gone);
        assert!(matches!(guard.release(), Err(Error::Lost(_))));
        assert!(is_taken(&client, name), "the next lock is not affected");
        assert_eq!(next.release(), Ok(()));
    }
}

fn the_loss_of_a_lock_that_is_kept_alive_is_told(backend: &Backend) {
    let client = backend.client();
    let lost = keep(&client, "kept", SHORT);
    let bystander = keep(&client, "other", SHORT);
    let told = watch(&lost);
    end_by_force(&backend.client(), "kept");
    called_once(&told, LossReason::Gone);
    assert_eq!(
        (loss(&lost), lost.remaining()),
        (Some(LossReason::Gone), Duration::ZERO)
    );
    thread::sleep(SHORT);
    assert_eq!(bystander.ensure_held(), Ok(()));
    drop(lost);
    assert_eq!(take_next(&client, "kept").release(), Ok(()));
}

fn losses_are_reported_once_as_events(backend: &Backend) {
    let other = backend.client();
    let (client, journal) = backend.recorded_client();
    type GiveUp = fn(LockGuard);
    let ways: [(GiveUp, &str); 3] = [
        (drop, "released"),
        (
            |guard| assert!(matches!(guard.release(), Err(Error::Lost(_)))),
            "released",
        ),
        (LockGuard::let_expire, "let_expire"),
    ];
    for (give_up, last) in ways {
        let guard = client.lock("late", BRIEF).unwrap();
        assert!(guard.wait_lost(LIMIT).is_some());
        give_up(guard);
        let events = journal.take_lock_events();
        let end = &events[events.len() - 2..];
        assert_eq!(names(end), ["lost", last]);
        assert!(
            end[0].text.contains("its validity has passed"),
            "{events:?}"
        );
        assert_eq!(
            names(&events)
                .iter()
                .filter(|name| **name == "lost")
                .count(),
            1
        );
        assert_eq!(end[1].validity, Duration::ZERO);
    }
    // Not by the clock, but by what the release finds.
    for guard in [take(&client, "gone"), keep(&client, "kept", LONG)] {
        let name = guard.resource().to_string();
        end_by_force(&other, &name);
        assert!(matches!(guard.release(), Err(Error::Lost(_))));
        let events = journal.take_lock_events();
        let of_it: Vec<_> = events
            .iter()
            .filter(|event| event.about == name)
            .cloned()
            .collect();
        assert_eq!(names(&of_it)[of_it.len() - 2..], ["lost", "released"]);
    }
}

fn an_operator_ends_the_lock_that_was_seen_and_no_later_one(backend: &Backend) {
    let client = backend.client();
    let operator = backend.client();
    let free = operator.inspect("seen").unwrap();
    let mut guard = take(&client, "seen");
    let seen = operator.inspect("seen").unwrap();
    assert_eq!(operator.force_release(&free), Ok(false), "nobody had it");
    guard.extend(LONG).unwrap();
    assert_eq!(
        operator.force_release(&seen),
        Ok(true),
        "it is the same lock for that"
    );
    let next = take_next(&operator, "seen");
    assert_eq!(operator.force_release(&seen), Ok(false), "it is gone");
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    assert_eq!((next.ensure_held(), next.release()), (Ok(()), Ok(())));
}

fn one_thread_calls_all_callbacks(backend: &Backend) {
    const LOCKS: usize = 40;
    let (tell, told) = channel();
    let events = tell.clone();
    let client = backend.builder().on_event(move |event| {
        if event.name() == "lost" {
            events.send(thread::current().id()).unwrap();
        }
    });
    let client = client.build().unwrap();
    let lock = |number| {
        let request = client
            .request(format!("lost-{number}"))
            .ttl(SHORT)
            .max_hold(SHORT);
        let guard = request.keep_alive().lock().unwrap();
        let tell = tell.clone();
        guard
            .on_lost(move |_| tell.send(thread::current().id()).unwrap())
            .unwrap();
        guard
    };
    let _guards: Vec<LockGuard> = (0..LOCKS).map(lock).collect();
    let threads: HashSet<_> = (0..2 * LOCKS)
        .map(|_| told.recv_timeout(LIMIT).unwrap())
        .collect();
    assert_eq!(threads.len(), 1, "threads that told {LOCKS} losses");
}

fn a_callback_that_blocks_delays_the_next_callback_but_no_extension(backend: &Backend) {
    let client = backend.client();
    let kept = keep(&client, "kept", SHORT);
    let (entered, inside) = channel();
    let (block, blocked) = channel::<()>();
    let first = client.lock("first", BRIEF).unwrap();
    first
        .on_lost(move |_| _ = (entered.send(()), blocked.recv()))
        .unwrap();
    inside.recv_timeout(LIMIT).unwrap();
    let second = client.lock("second", BRIEF).unwrap();
    let told = watch(&second);
    assert_eq!(
        second.wait_lost(LIMIT).map(reason),
        Some(LossReason::Expired)
    );
    assert!(told.recv_timeout(2 * SHORT).is_err(), "one after another");
    assert_eq!(kept.ensure_held(), Ok(()), "it was extended meanwhile");
    drop(block);
    called_once(&told, LossReason::Expired);
}

fn callbacks_may_panic_take_the_lock_and_drop_guards_and_clients(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let bystander = keep(&client, "bystander", SHORT);
    let watched = client.lock("watched", BRIEF).unwrap();
    let again = client.clone();
    let held = take(&client, "held");
    watched
        .on_lost(|_| panic!("a callback that panics, as this test wants it to"))
        .unwrap();
    watched
        .on_lost(move |_| again.lock("watched", LONG).unwrap().release().unwrap())
        .unwrap();
    watched.on_lost(move |_| drop(held)).unwrap();
    let told = watch(&watched);
    called_once(&told, LossReason::Expired);
    drop((take_next(&other, "watched"), take_next(&other, "held")));

    // Its own guard, and the last clone of its client.
    let own = backend.client();
    let guard = own.lock("own", BRIEF).unwrap();
    let (hand, handed) = channel::<(LockGuard, LockClient)>();
    let (tell, told) = channel();
    guard
        .on_lost(move |lost| {
            drop(handed.recv().unwrap());
            tell.send(lost.reason()).unwrap();
        })
        .unwrap();
    hand.send((guard, own)).unwrap();
    assert_eq!(told.recv_timeout(LIMIT), Ok(LossReason::Expired));
    thread::sleep(SHORT);
    assert_eq!(
        bystander.ensure_held(),
        Ok(()),
        "others are extended meanwhile"
    );
}
