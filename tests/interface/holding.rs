//! Holding a lock: its end, extending it, keeping it alive, its events.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LossReason};
use support::backend::Backend;
use support::loss::loss;
use support::{eventually, on_each_backend};

use crate::{LIMIT, LONG};

const SHORT: Duration = Duration::from_millis(1500);

on_each_backend!(
    a_lock_ends_with_its_ttl,
    an_extension_keeps_a_lock,
    a_lock_that_has_ended_cannot_be_extended,
    no_extension_goes_beyond_max_hold,
    a_lock_that_is_kept_alive_outlives_its_ttl,
    a_lock_that_is_kept_alive_ends_with_max_hold,
    a_guard_that_is_leaked_frees_its_lock_when_its_ttl_has_passed,
    the_loss_of_a_lock_is_told,
    what_happens_to_a_lock_is_told_in_its_order,
    a_thread_that_waits_gets_what_another_one_lost,
);

fn a_lock_ends_with_its_ttl(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let began = Instant::now();
    let lock = client.lock("ends", SHORT).unwrap();
    assert!(lock.remaining() <= SHORT);
    let next = other.request("ends").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap();
    assert!(began.elapsed() >= SHORT, "not before its ttl");
    assert_eq!(lock.remaining(), Duration::ZERO, "the first lost it before the second had it");
    assert_eq!(loss(&lock), Some(LossReason::Expired));
    let Err(Error::Lost(lost)) = lock.release() else { panic!("it was lost") };
    assert_eq!(lost.reason(), LossReason::Expired);
    assert_eq!(next.release(), Ok(()), "the release of the first has not freed it");
}

fn an_extension_keeps_a_lock(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let mut lock = client.lock("extended", SHORT).unwrap();
    let began = Instant::now();
    while began.elapsed() < 3 * SHORT {
        lock.extend(SHORT).unwrap();
        assert!(other.try_lock("extended", LONG).unwrap().is_none());
        thread::sleep(SHORT / 5);
    }
    lock.extend(Duration::from_millis(300)).unwrap();
    assert!(lock.remaining() > Duration::from_millis(300), "it never becomes shorter");
    assert_eq!(lock.release(), Ok(()));
}

fn a_lock_that_has_ended_cannot_be_extended(backend: &Backend) {
    let client = backend.client();
    let mut lock = client.lock("too-late", Duration::from_millis(300)).unwrap();
    assert!(lock.wait_lost(LIMIT).is_some());
    let Err(Error::Lost(lost)) = lock.extend(LONG) else { panic!("it was lost") };
    assert_eq!(
        (lost.reason(), lost.resource().as_bytes()),
        (LossReason::Expired, &b"too-late"[..])
    );
}

fn no_extension_goes_beyond_max_hold(backend: &Backend) {
    let client = backend.client();
    let longest = Duration::from_secs(20);
    let mut lock = client.request("longest").ttl(SHORT).max_hold(longest).lock().unwrap();
    let refused = lock.extend(LONG);
    assert!(matches!(refused, Err(Error::HeldTooLong { max_hold, .. }) if max_hold == longest));
    assert_eq!(lock.extend(Duration::from_secs(15)), Ok(()));
}

fn a_lock_that_is_kept_alive_outlives_its_ttl(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let lock = client.request("kept").ttl(SHORT).keep_alive().lock().unwrap();
    assert!(other.request("kept").ttl(LONG).try_lock_for(3 * SHORT).unwrap().is_none());
    assert_eq!(lock.ensure_held(), Ok(()));
    assert_eq!(lock.release(), Ok(()));
    assert!(other.request("kept").ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
}

fn a_lock_that_is_kept_alive_ends_with_max_hold(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    let longest = 2 * SHORT;
    let request = client.request("kept-longest").ttl(SHORT).max_hold(longest).keep_alive();
    let began = Instant::now();
    let lock = request.lock().unwrap();
    let next = other.request("kept-longest").ttl(LONG).try_lock_for(LIMIT).unwrap();
    assert!(next.is_some() && began.elapsed() >= SHORT);
    assert_eq!(loss(&lock), Some(LossReason::Expired));
}

fn a_guard_that_is_leaked_frees_its_lock_when_its_ttl_has_passed(backend: &Backend) {
    let (client, other) = (backend.client(), backend.client());
    std::mem::forget(client.lock("leaked", SHORT).unwrap());
    assert!(other.try_lock("leaked", LONG).unwrap().is_none());
    assert!(other.request("leaked").ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
    // Also for the threads of its own client.
    std::mem::forget(client.lock("leaked-own", SHORT).unwrap());
    assert!(client.request("leaked-own").ttl(LONG).try_lock_for(LIMIT).unwrap().is_some());
}

fn the_loss_of_a_lock_is_told(backend: &Backend) {
    let client = backend.client();
    let lock = client.lock("told", SHORT).unwrap();
    let (tell, told) = mpsc::channel();
    lock.on_lost(move |lost| tell.send(lost.reason()).unwrap()).unwrap();
    assert_eq!(lock.wait_lost(Duration::from_millis(10)), None);
    assert_eq!(lock.wait_lost(LIMIT).unwrap().reason(), LossReason::Expired);
    assert_eq!(told.recv_timeout(LIMIT), Ok(LossReason::Expired));
    let released = client.lock("not-told", LONG).unwrap();
    let (tell, told) = mpsc::channel();
    released.on_lost(move |lost| tell.send(lost.reason()).unwrap()).unwrap();
    released.release().unwrap();
    assert!(told.recv_timeout(Duration::from_millis(300)).is_err(), "it was not lost");
}

fn what_happens_to_a_lock_is_told_in_its_order(backend: &Backend) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let client = backend.builder().on_event(move |event| {
        if event.resource().is_some() {
            seen.lock().unwrap().push(event.name().to_owned());
        }
    });
    let client = client.build().unwrap();
    let holder = backend.client();
    let guard = holder.lock("events", LONG).unwrap();
    assert!(client.try_lock("events", LONG).unwrap().is_none());
    let waiting = thread::spawn(move || {
        let mut lock = client.lock("events", LONG).unwrap();
        lock.extend(LONG).unwrap();
        lock.release().unwrap();
    });
    assert!(eventually(LIMIT, || events.lock().unwrap().iter().any(|name| name == "queued")));
    guard.release().unwrap();
    waiting.join().unwrap();
    let mut names = events.lock().unwrap().clone();
    // Redlock's attempts are rounds, those of a contender its znodes.
    names.dedup();
    names.retain(|name| name != "attempt");
    let expected = ["contended", "queued", "woken", "acquired", "extended", "released"];
    assert_eq!(names, expected);
}

fn a_thread_that_waits_gets_what_another_one_lost(backend: &Backend) {
    let client = &backend.client();
    let lock = client.lock("handed", SHORT).unwrap();
    thread::scope(|scope| {
        let waiting = scope
            .spawn(|| client.request("handed").ttl(LONG).try_lock_for(LIMIT).unwrap().unwrap());
        // The guard stays until after its end.
        assert!(lock.wait_lost(LIMIT).is_some());
        assert_eq!(waiting.join().unwrap().ensure_held(), Ok(()));
    });
    assert!(lock.ensure_held().is_err());
}
