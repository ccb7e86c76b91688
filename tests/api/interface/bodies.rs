//! `with_lock`: the body runs with the lock held, and never without.

use std::panic::{RefUnwindSafe, UnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard, LockRequest, LossReason, Released};
use support::backend::Backend;
use support::loss::loss_in;
use support::on_each_backend;
use support::waiters::await_in_order;

use super::{LIMIT, LONG, SHORT, WAIT, end_by_force, is_taken, take, take_next};

on_each_backend!(
    a_body_has_the_lock_for_as_long_as_it_runs,
    a_body_waits_for_the_lock,
    a_panic_of_a_body_continues_and_the_lock_is_released,
    without_the_lock_no_body_runs,
    the_settings_of_a_request_apply_to_its_body,
    a_body_that_waits_for_its_own_lock_is_told_so,
    a_thread_may_wait_for_a_lock_whose_guard_it_moved,
    a_guard_that_is_dropped_late_leaves_the_next_lock_to_its_thread,
    a_body_that_succeeds_after_its_lock_was_lost_is_an_error,
    a_bodys_own_error_is_returned_also_when_its_lock_was_lost,
    a_body_that_returns_makes_a_release_with_a_known_outcome,
);

fn a_body_has_the_lock_for_as_long_as_it_runs(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let value = client.with_lock("body", SHORT, |lock| {
        assert_eq!(lock.resource(), b"body");
        assert!(
            other
                .request("body")
                .ttl(LONG)
                .try_lock_for(2 * SHORT)?
                .is_none()
        );
        assert!(lock.remaining() > Duration::ZERO);
        assert_eq!(lock.ensure_held(), Ok(()));
        Ok::<_, Error>(7)
    });
    assert_eq!(value, Ok(7));
    drop(take_next(&other, "body"));
}

fn a_body_waits_for_the_lock(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let held = take(&other, "waits");
    thread::scope(|scope| {
        let work = scope.spawn(|| client.with_lock("waits", LONG, LockGuard::ensure_held));
        await_in_order(&other, "waits", 1);
        assert!(!work.is_finished());
        assert_eq!(held.release(), Ok(()));
        assert_eq!(work.join().unwrap(), Ok(()));
    });
}

fn a_panic_of_a_body_continues_and_the_lock_is_released(backend: &Backend) {
    let client = backend.client();
    let body = || {
        client.with_lock("panic", LONG, |_| -> Result<(), Error> {
            panic!("as planned")
        })
    };
    let panic = catch_unwind(body).expect_err("the caller gets it");
    assert_eq!(panic.downcast_ref(), Some(&"as planned"));
    drop(take_next(&backend.client(), "panic"));
    let next = client.with_lock("panic", LONG, |_| Ok::<_, Error>(1));
    assert_eq!(next, Ok(1), "the client still works");
}

#[test]
fn a_client_its_requests_and_its_guards_may_be_used_after_a_panic() {
    fn check<T: UnwindSafe + RefUnwindSafe>() {}
    check::<LockClient>();
    check::<LockRequest<'_>>();
    check::<LockGuard>();
}

/// A body that must not run.
fn never(_: &LockGuard) -> Result<(), Error> {
    panic!("it ran")
}

fn without_the_lock_no_body_runs(backend: &Backend) {
    let client = backend.client();
    assert!(matches!(
        client.with_lock("", LONG, never),
        Err(Error::Resource(_))
    ));
    for ttl in [Duration::ZERO, Duration::MAX] {
        assert!(matches!(
            client.with_lock("never", ttl, never),
            Err(Error::Ttl(_))
        ));
    }
    let held = take(&backend.client(), "never");
    let request = client.request("never").ttl(LONG);
    assert_eq!(request.clone().try_with_lock(never), Ok(None));
    assert_eq!(request.clone().try_with_lock_for(WAIT, never), Ok(None));
    assert_eq!(
        request.try_with_lock_until(Instant::now() + WAIT, never),
        Ok(None)
    );
    assert_eq!(held.release(), Ok(()));
}

fn the_settings_of_a_request_apply_to_its_body(backend: &Backend) {
    let client = backend.client();
    let request = client.request("fenced").ttl(LONG).fenced();
    let token = |lock: &LockGuard| Ok::<_, Error>(lock.fencing_token());
    let first = request
        .clone()
        .try_with_lock_for(LIMIT, token)
        .unwrap()
        .flatten();
    let second = request.with_lock(token).unwrap();
    assert!(first.is_some() && first < second, "{first:?} {second:?}");
}

fn a_body_that_waits_for_its_own_lock_is_told_so(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let own = |result: Result<_, Error>| matches!(result, Err(Error::HeldByThisThread));
    let request = || client.request("own").ttl(LONG);
    let ran = client.with_lock("own", LONG, |_| {
        assert!(own(client.lock("own", LONG).map(drop)));
        assert!(own(client.clone().with_lock("own", LONG, |_| Ok(()))));
        assert!(own(request().try_lock_for(LIMIT).map(drop)));
        assert!(own(request().fenced().keep_alive().lock().map(drop)));
        assert!(own(request().shared().lock().map(drop)));
        // A request that does not wait is refused as usual, and other locks are free.
        assert!(is_taken(&client, "own"));
        assert!(request().try_lock_for(Duration::ZERO).unwrap().is_none());
        assert!(
            request()
                .shared()
                .try_lock_for(Duration::ZERO)
                .unwrap()
                .is_none()
        );
        drop(client.lock("other", LONG).unwrap());
        let both = || client.request_all(["one", "two"]).ttl(LONG);
        assert_eq!(
            both().with_lock(|_| Ok::<_, Error>(own(both().lock().map(drop)))),
            Ok(true)
        );
        // Another client and another thread wait as usual.
        assert!(is_taken(&other, "own"));
        assert!(
            other
                .request("own")
                .ttl(LONG)
                .try_lock_for(WAIT)
                .unwrap()
                .is_none()
        );
        thread::scope(|scope| {
            let waits = scope.spawn(|| request().try_lock_for(WAIT).unwrap().is_none());
            assert!(waits.join().unwrap());
        });
        Ok::<_, Error>(())
    });
    assert_eq!(ran, Ok(()));
    // The lock is free again, and the thread holds none.
    assert_eq!(client.lock("own", LONG).unwrap().release(), Ok(()));
}

fn a_thread_may_wait_for_a_lock_whose_guard_it_moved(backend: &Backend) {
    let client = backend.client();
    let guard = client
        .request("moved")
        .ttl(LONG)
        .keep_alive()
        .lock()
        .unwrap();
    let elsewhere = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        drop(guard);
    });
    drop(take_next(&client, "moved"));
    elsewhere.join().unwrap();
}

fn a_guard_that_is_dropped_late_leaves_the_next_lock_to_its_thread(backend: &Backend) {
    let client = backend.client();
    let expired = client.lock("late", SHORT).unwrap();
    drop(take_next(&client, "late"));
    let own = client.with_lock("late", LONG, |_| {
        drop(expired);
        Ok::<_, Error>(
            client
                .request("late")
                .ttl(LONG)
                .try_lock_for(SHORT)
                .map(drop),
        )
    });
    assert_eq!(own, Ok(Err(Error::HeldByThisThread)));
}

fn a_body_that_succeeds_after_its_lock_was_lost_is_an_error(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let mut booked = None;
    let result = client.with_lock("gone", LONG, |_| {
        end_by_force(&other, "gone");
        booked = Some(42);
        Ok(())
    });
    assert_eq!(loss_in(result), Some(LossReason::Gone));
    assert_eq!(booked, Some(42), "the body leaves what must be undone");
    let request = client.request("seats").ttl(SHORT).max_hold(2 * SHORT);
    let result = request.try_with_lock(|lock| {
        assert!(lock.wait_lost(LIMIT).is_some());
        Ok::<_, Error>("sold")
    });
    let text = result.as_ref().unwrap_err().to_string();
    assert!(
        text.starts_with("the lock \"seats\" is lost: its validity has passed"),
        "{text}"
    );
    assert_eq!(loss_in(result.map(drop)), Some(LossReason::Expired));
}

fn a_bodys_own_error_is_returned_also_when_its_lock_was_lost(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let own = Error::HeldByThisThread;
    for is_lost in [false, true] {
        let failed = client.request("error").ttl(LONG).with_lock(|_| {
            if is_lost {
                end_by_force(&other, "error");
            }
            Err::<(), _>(own.clone())
        });
        assert_eq!(failed, Err(own.clone()));
        drop(take_next(&other, "error"));
    }
}

fn a_body_that_returns_makes_a_release_with_a_known_outcome(backend: &Backend) {
    let other = backend.client();
    let (client, journal) = backend.recorded_client();
    let outcome = || {
        journal
            .take_lock_events()
            .last()
            .and_then(|event| event.released)
    };
    client
        .with_lock("one", LONG, |_| Ok::<_, Error>(()))
        .unwrap();
    assert_eq!(outcome(), Some(Released::InTime));
    client
        .with_lock("one", LONG, |_| Err::<(), _>(Error::Cancelled))
        .unwrap_err();
    assert_eq!(outcome(), Some(Released::InTime));
    let lost = client.with_lock("one", LONG, |_| {
        end_by_force(&other, "one");
        Ok(())
    });
    assert_eq!(loss_in(lost), Some(LossReason::Gone));
    assert_eq!(outcome(), Some(Released::TooLate));
}
