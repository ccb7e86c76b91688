//! Holding a lock: its end, extending it, keeping it alive, its events.

use std::thread;
use std::time::{Duration, Instant};

use redlatch::error::TtlError;
use redlatch::{Error, LossReason};
use support::backend::Backend;
use support::journal::{Journal, names};
use support::loss::loss;
use support::{eventually, on_each_backend};

use super::{LIMIT, LONG, SHORT, is_taken, take, take_next};

on_each_backend!(
    a_lock_ends_with_its_ttl,
    an_extension_keeps_a_lock,
    an_extension_with_a_bad_ttl_changes_nothing,
    a_lock_that_has_ended_cannot_be_extended,
    no_extension_goes_beyond_max_hold,
    a_lock_that_is_kept_alive_outlives_its_ttl,
    a_lock_that_is_kept_alive_and_leaked_ends_with_max_hold,
    automatic_extensions_never_shorten_one_by_the_holder,
    a_guard_that_is_leaked_frees_its_lock_when_its_ttl_has_passed,
    what_happens_to_a_lock_is_told_in_its_order,
);

fn a_lock_ends_with_its_ttl(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let began = Instant::now();
    let lock = client.lock("ends", SHORT).unwrap();
    assert!(lock.remaining() <= SHORT);
    let next = take_next(&other, "ends");
    assert!(began.elapsed() >= SHORT, "not before its ttl");
    assert_eq!(
        lock.remaining(),
        Duration::ZERO,
        "the first lost it before the second had it"
    );
    assert_eq!(loss(&lock), Some(LossReason::Expired));
    let Err(Error::Lost(lost)) = lock.release() else {
        panic!("it was lost")
    };
    assert_eq!(lost.reason(), LossReason::Expired);
    assert_eq!(
        next.release(),
        Ok(()),
        "the release of the first has not freed it"
    );
}

fn an_extension_keeps_a_lock(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let mut lock = client.lock("extended", SHORT).unwrap();
    let began = Instant::now();
    while began.elapsed() < 3 * SHORT {
        lock.extend(SHORT).unwrap();
        assert!(is_taken(&other, "extended"));
        thread::sleep(SHORT / 5);
    }
    lock.extend(Duration::from_millis(300)).unwrap();
    assert!(
        lock.remaining() > Duration::from_millis(300),
        "it never becomes shorter"
    );
    assert_eq!(lock.release(), Ok(()));
}

fn an_extension_with_a_bad_ttl_changes_nothing(backend: &Backend) {
    let mut lock = take(&backend.client(), "odd");
    for ttl in [Duration::ZERO, Duration::from_secs(61), Duration::MAX] {
        assert!(matches!(lock.extend(ttl), Err(Error::Ttl(_))), "{ttl:?}");
    }
    assert_eq!(lock.release(), Ok(()));
}

fn a_lock_that_has_ended_cannot_be_extended(backend: &Backend) {
    let client = backend.client();
    let mut lock = client.lock("too-late", Duration::from_millis(300)).unwrap();
    assert!(lock.wait_lost(LIMIT).is_some());
    let Err(Error::Lost(lost)) = lock.extend(LONG) else {
        panic!("it was lost")
    };
    assert_eq!(
        (lost.reason(), lost.resource().as_bytes()),
        (LossReason::Expired, &b"too-late"[..])
    );
}

fn no_extension_goes_beyond_max_hold(backend: &Backend) {
    let longest = Duration::from_secs(20);
    let own = backend.client();
    let set = backend.builder().max_hold(longest).build().unwrap();
    for request in [
        own.request("longest").max_hold(longest),
        set.request("longest"),
    ] {
        let mut lock = request.ttl(SHORT).lock().unwrap();
        match lock.extend(LONG) {
            Err(Error::HeldTooLong { held, max_hold }) => {
                assert!(held >= LONG && max_hold == longest, "{held:?}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(lock.ensure_held(), Ok(()));
        assert_eq!(lock.extend(Duration::from_secs(15)), Ok(()));
        assert_eq!(lock.release(), Ok(()));
    }
    let set = backend.builder().max_hold(SHORT).build().unwrap();
    for refused in [
        own.request("longest")
            .keep_alive()
            .max_hold(SHORT)
            .lock()
            .map(Some),
        own.request("longest")
            .ttl(LONG)
            .max_hold(SHORT)
            .lock()
            .map(Some),
        own.request("longest")
            .ttl(LONG)
            .max_hold(SHORT)
            .shared()
            .try_lock(),
        set.request("longest").ttl(LONG).try_lock(),
        set.request_all(["longest", "more"])
            .ttl(LONG)
            .try_lock_for(LIMIT),
    ] {
        let Err(Error::Ttl(TtlError::BeyondHold {
            max_hold: SHORT, ..
        })) = refused
        else {
            panic!("{refused:?}")
        };
    }
    // Zero leaves it at the first ttl.
    let mut lock = own
        .request("longest")
        .ttl(LONG)
        .max_hold(Duration::ZERO)
        .lock()
        .unwrap();
    assert!(matches!(lock.extend(LONG), Err(Error::HeldTooLong { .. })));
}

fn a_lock_that_is_kept_alive_outlives_its_ttl(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let lock = client
        .request("kept")
        .ttl(SHORT)
        .keep_alive()
        .lock()
        .unwrap();
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            while began.elapsed() < 3 * SHORT {
                assert_eq!(lock.ensure_held(), Ok(()), "after {:?}", began.elapsed());
                thread::sleep(Duration::from_millis(5));
            }
        });
        assert!(
            other
                .request("kept")
                .ttl(LONG)
                .try_lock_for(3 * SHORT)
                .unwrap()
                .is_none()
        );
    });
    assert_eq!(lock.release(), Ok(()));
    drop(take_next(&other, "kept"));
}

fn a_lock_that_is_kept_alive_and_leaked_ends_with_max_hold(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let longest = 2 * SHORT;
    let request = client
        .request("kept-longest")
        .ttl(SHORT)
        .max_hold(longest)
        .keep_alive();
    let began = Instant::now();
    let lock = request.lock().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    lock.on_lost(move |lost| tell.send(lost.reason()).unwrap())
        .unwrap();
    std::mem::forget(lock);
    assert_eq!(told.recv_timeout(LIMIT), Ok(LossReason::Expired));
    drop(take_next(&other, "kept-longest"));
    assert!(began.elapsed() >= SHORT);
}

fn automatic_extensions_never_shorten_one_by_the_holder(backend: &Backend) {
    let client = backend.client();
    let mut lock = client
        .request("both")
        .ttl(SHORT)
        .keep_alive()
        .lock()
        .unwrap();
    let began = Instant::now();
    while began.elapsed() < 2 * SHORT {
        lock.extend(SHORT / 2).unwrap();
        assert!(lock.remaining() > SHORT / 4);
        thread::sleep(SHORT / 100);
    }
    lock.extend(LONG).unwrap();
    let left = lock.remaining();
    thread::sleep(SHORT);
    assert!(
        lock.remaining() + 2 * SHORT > left,
        "{left:?} and {:?}",
        lock.remaining()
    );
    assert_eq!(lock.release(), Ok(()));
}

fn a_guard_that_is_leaked_frees_its_lock_when_its_ttl_has_passed(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    std::mem::forget(client.lock("leaked", SHORT).unwrap());
    assert!(is_taken(&other, "leaked"));
    drop(take_next(&other, "leaked"));
    // Also for the threads of its own client.
    std::mem::forget(client.lock("leaked-own", SHORT).unwrap());
    drop(take_next(&client, "leaked-own"));
}

fn what_happens_to_a_lock_is_told_in_its_order(backend: &Backend) {
    let journal = Journal::default();
    let settings = backend
        .builder()
        .key_prefix("prefix:")
        .on_event(journal.recorder());
    let client = settings.build().unwrap();
    let holder = backend.client();
    let guard = take(&holder, "prefix:events");
    assert!(is_taken(&client, "events"));
    let waiting = thread::spawn(move || {
        let mut lock = client.lock("events", LONG).unwrap();
        lock.extend(LONG).unwrap();
        lock.release().unwrap();
    });
    let is_queued = || journal.entries().iter().any(|event| event.name == "queued");
    assert!(eventually(LIMIT, is_queued));
    guard.release().unwrap();
    waiting.join().unwrap();
    let events = journal.take_lock_events();
    assert!(
        events.iter().all(|event| event.about == "events"),
        "without the prefix: {events:?}"
    );
    let mut names = names(&events);
    // Redlock's attempts are rounds, those of a contender its znodes.
    names.dedup();
    names.retain(|name| *name != "attempt");
    let expected = [
        "contended",
        "queued",
        "woken",
        "acquired",
        "extended",
        "released",
    ];
    assert_eq!(names, expected);
}
