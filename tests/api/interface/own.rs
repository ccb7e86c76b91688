//! What a client knows of its own threads: who holds a lock, who waits for it, and who waits for
//! itself.

use std::thread;
use std::time::Duration;

use redlatch::{Error, LockClient, LockRequest, OwnHolder, OwnThreads};
use support::backend::Backend;
use support::journal::Journal;
use support::{eventually, on_each_backend};

use super::{LIMIT, LONG, WAIT, take, take_next};

on_each_backend!(
    a_wait_of_the_thread_that_took_the_lock_is_reported_once,
    a_wait_behind_another_thread_or_another_client_is_not_reported,
    a_lock_for_no_thread_in_particular_is_not_waited_for_by_itself,
    a_share_keeps_the_thread_that_has_it_from_the_lock_and_not_from_a_share,
    a_thread_that_has_all_permits_waits_for_itself,
    a_set_is_held_under_each_of_its_names,
    a_body_under_a_share_or_a_set_that_waits_for_itself_is_told_so,
    a_lock_that_was_given_up_is_not_held_by_its_thread,
    an_inspection_shows_the_threads_of_its_client_that_wait,
    an_inspection_shows_readers_and_sets_of_its_client_that_wait,
);

/// Waits for a lock that is not given up meanwhile. Nodes that are slow may not have said so.
#[track_caller]
fn waits_in_vain(request: LockRequest<'_>) {
    let result = request.try_lock_for(Duration::from_millis(50));
    assert!(!matches!(result, Ok(Some(_))), "{result:?}");
}

const OWN_WAIT: &str = "held_by_this_thread";

fn recorded(backend: &Backend) -> (LockClient, Journal) {
    let journal = Journal::default();
    (
        backend
            .builder()
            .on_event(journal.recorder())
            .build()
            .unwrap(),
        journal,
    )
}

fn request<'a>(client: &'a LockClient, name: &str) -> LockRequest<'a> {
    client.request(name).ttl(LONG)
}

fn holder(client: &LockClient, name: &str) -> Option<OwnHolder> {
    request(client, name).own_holder()
}

/// The locks of which it was reported that their thread waits for them.
fn reported(journal: &Journal) -> Vec<String> {
    let events = journal.take_lock_events();
    let own = events.into_iter().filter(|event| event.name == OWN_WAIT);
    own.map(|event| event.about).collect()
}

fn own_threads(client: &LockClient, name: &str) -> OwnThreads {
    client.inspect(name).unwrap().own_threads
}

fn a_wait_of_the_thread_that_took_the_lock_is_reported_once(backend: &Backend) {
    let (client, journal) = recorded(backend);
    assert_eq!(holder(&client, "own"), None);
    let guard = take(&client, "own");
    assert_eq!(holder(&client, "own"), Some(OwnHolder::ThisThread));
    assert!(
        client.try_lock("own", LONG).unwrap().is_none(),
        "it does not wait"
    );
    assert_eq!(reported(&journal), [""; 0]);
    waits_in_vain(request(&client, "own"));
    assert_eq!(reported(&journal), ["own"]);
    let text = holder(&client, "own").unwrap().to_string();
    assert_eq!(text, "this thread holds it itself");
    drop(guard);
    drop(take_next(&client, "own"));
    assert_eq!(reported(&journal), [""; 0]);
}

fn a_wait_behind_another_thread_or_another_client_is_not_reported(backend: &Backend) {
    let ((client, journal), other) = (recorded(backend), backend.client());
    let guard = take(&other, "other");
    assert_eq!(holder(&client, "other"), None);
    waits_in_vain(request(&client, "other"));
    drop(guard);
    // Also where the lock comes by a handoff.
    let guard = take_next(&client, "other");
    thread::scope(|scope| {
        let next = scope.spawn(|| take_next(&client, "other"));
        assert!(eventually(LIMIT, || own_threads(&client, "other").waiting == 1));
        drop(guard);
        let next = next.join().unwrap();
        assert_eq!(holder(&client, "other"), Some(OwnHolder::OtherThread));
        waits_in_vain(request(&client, "other"));
        drop(next);
    });
    assert_eq!(reported(&journal), [""; 0]);
    assert_eq!(holder(&client, "other"), None);
}

fn a_lock_for_no_thread_in_particular_is_not_waited_for_by_itself(backend: &Backend) {
    let (client, journal) = recorded(backend);
    let guard = request(&client, "pool").for_thread(None).lock().unwrap();
    assert_eq!(holder(&client, "pool"), Some(OwnHolder::OtherThread));
    let other_task = request(&client, "pool").for_thread(None);
    assert_eq!(other_task.own_holder(), Some(OwnHolder::OtherThread));
    waits_in_vain(request(&client, "pool"));
    drop(guard);
    let _guard = take_next(&client, "pool");
    waits_in_vain(request(&client, "pool").for_thread(None));
    assert_eq!(reported(&journal), [""; 0]);
    // A call in another thread for this one.
    let this = Some(thread::current().id());
    thread::scope(|scope| {
        scope.spawn(|| {
            let request = || request(&client, "pool").for_thread(this);
            waits_in_vain(request());
            assert_eq!(request().own_holder(), Some(OwnHolder::ThisThread));
        });
    });
    assert_eq!(reported(&journal), ["pool"]);
}

fn a_share_keeps_the_thread_that_has_it_from_the_lock_and_not_from_a_share(backend: &Backend) {
    let (client, journal) = recorded(backend);
    let reader = request(&client, "read").shared().lock().unwrap();
    assert_eq!(request(&client, "read").shared().own_holder(), None);
    drop(request(&client, "read").shared().lock().unwrap());
    assert_eq!(reported(&journal), [""; 0]);
    assert_eq!(
        request(&client, "read").one_of(2).own_holder(),
        Some(OwnHolder::ThisThread)
    );
    waits_in_vain(request(&client, "read"));
    assert_eq!(reported(&journal), ["read"]);
    drop(reader);
    assert_eq!(holder(&client, "read"), None);

    let permit = request(&client, "permit").one_of(2).lock().unwrap();
    // One permit of several is no other.
    assert_eq!(request(&client, "permit").one_of(2).own_holder(), None);
    waits_in_vain(request(&client, "permit"));
    assert_eq!(reported(&journal), ["permit"]);
    drop(permit);

    let _writer = take(&client, "write");
    waits_in_vain(request(&client, "write").shared());
    assert_eq!(reported(&journal), ["write"]);
}

fn a_thread_that_has_all_permits_waits_for_itself(backend: &Backend) {
    let ((client, journal), other) = (recorded(backend), backend.client());
    let permit = |client: &LockClient| request(client, "permits").one_of(2).lock().unwrap();
    let first = permit(&client);
    let others = permit(&other);
    waits_in_vain(request(&client, "permits").one_of(2));
    assert_eq!(request(&client, "permits").one_of(2).own_holder(), None);
    drop(others);
    let in_thread = thread::scope(|scope| scope.spawn(|| permit(&client)).join().unwrap());
    waits_in_vain(request(&client, "permits").one_of(2));
    let holder = || request(&client, "permits").one_of(2).own_holder();
    assert_eq!(
        holder(),
        Some(OwnHolder::OtherThread),
        "the other thread can end the wait"
    );
    drop(in_thread);
    assert_eq!(reported(&journal), [""; 0]);
    let second = permit(&client);
    assert_eq!(holder(), Some(OwnHolder::ThisThread));
    waits_in_vain(request(&client, "permits").one_of(2));
    assert_eq!(reported(&journal), ["permits"]);
    drop((first, second));
    assert_eq!(holder(), None);
}

fn a_set_is_held_under_each_of_its_names(backend: &Backend) {
    let (client, journal) = recorded(backend);
    let set = client.request_all(["one", "two"]).ttl(LONG).lock().unwrap();
    for name in ["one", "two"] {
        assert_eq!(holder(&client, name), Some(OwnHolder::ThisThread));
        waits_in_vain(request(&client, name));
        assert_eq!(reported(&journal), [name]);
    }
    assert_eq!(holder(&client, "three"), None);
    drop(set);
    assert_eq!(holder(&client, "two"), None);
    let _one = take_next(&client, "two");
    let set = || client.request_all(["one", "two"]).ttl(LONG);
    assert_eq!(set().own_holder(), Some(OwnHolder::ThisThread));
    waits_in_vain(set());
    assert_eq!(reported(&journal), ["two"]);
}

fn a_body_under_a_share_or_a_set_that_waits_for_itself_is_told_so(backend: &Backend) {
    let (client, journal) = recorded(backend);
    let own = |result: Result<_, Error>| matches!(result, Err(Error::HeldByThisThread));
    let under = |request: LockRequest<'_>, name: &str| {
        let waiting = || client.request(name).ttl(LONG).try_lock_for(WAIT).map(drop);
        request.with_lock(|_| Ok::<_, Error>(own(waiting())))
    };
    assert_eq!(under(request(&client, "read").shared(), "read"), Ok(true));
    assert_eq!(
        under(request(&client, "permit").one_of(3), "permit"),
        Ok(true)
    );
    let permit = request(&client, "one").one_of(1).with_lock(|_| {
        let wait = request(&client, "one").one_of(1).try_lock_for(WAIT);
        Ok::<_, Error>(own(wait.map(drop)))
    });
    assert_eq!(permit, Ok(true));
    assert_eq!(
        under(client.request_all(["one", "two"]).ttl(LONG), "two"),
        Ok(true)
    );
    assert_eq!(reported(&journal), [""; 0], "an error is not an event");
}

fn a_lock_that_was_given_up_is_not_held_by_its_thread(backend: &Backend) {
    let client = backend.client();
    let requests = || {
        let plain = request(&client, "up");
        [
            plain.clone(),
            plain.clone().shared(),
            plain.one_of(2),
            client.request_all(["up", "more"]),
        ]
    };
    for request in requests() {
        let guard = request
            .clone()
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .unwrap();
        assert_eq!(holder(&client, "up"), Some(OwnHolder::ThisThread));
        guard.release().unwrap();
        assert_eq!(holder(&client, "up"), None);
        request
            .ttl(LONG)
            .try_lock_for(LIMIT)
            .unwrap()
            .unwrap()
            .let_expire();
        assert_eq!(holder(&client, "up"), None);
        super::end_by_force(&client, "up");
    }
}

fn an_inspection_shows_the_threads_of_its_client_that_wait(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let nobody = OwnThreads::default();
    assert_eq!(own_threads(&client, "wait"), nobody);
    let guard = take(&client, "wait");
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| drop(take_next(&client, "wait")));
        }
        assert!(eventually(LIMIT, || own_threads(&client, "wait").waiting == 5));
        let seen = own_threads(&client, "wait");
        assert_eq!(seen.holder, Some(OwnHolder::ThisThread));
        let longest = seen.longest_wait.unwrap();
        assert!(eventually(LIMIT, || own_threads(&client, "wait")
            .longest_wait
            > Some(longest)));
        assert_eq!(
            own_threads(&other, "wait"),
            nobody,
            "only their own client knows them"
        );
        drop(guard);
    });
    assert_eq!(own_threads(&client, "wait"), nobody);
    // One asks the nodes for all, and is one of them.
    let guard = take_next(&other, "wait");
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| drop(take_next(&client, "wait")));
        }
        assert!(eventually(LIMIT, || own_threads(&client, "wait").waiting == 3));
        assert_eq!(own_threads(&client, "wait").holder, None);
        drop(guard);
    });
}

fn an_inspection_shows_readers_and_sets_of_its_client_that_wait(backend: &Backend) {
    let client = backend.client();
    let guard = take(&client, "wait");
    thread::scope(|scope| {
        let read = || {
            drop(
                request(&client, "wait")
                    .shared()
                    .try_lock_for(LIMIT)
                    .unwrap()
                    .unwrap(),
            );
        };
        scope.spawn(read);
        scope.spawn(read);
        let set = client.request_all(["wait", "other"]).ttl(LONG);
        scope.spawn(move || drop(set.try_lock_for(LIMIT).unwrap().unwrap()));
        assert!(eventually(LIMIT, || own_threads(&client, "wait").waiting == 3));
        assert!(own_threads(&client, "other").waiting == 1);
        assert_eq!(own_threads(&client, "wai"), OwnThreads::default());
        drop(guard);
    });
    assert_eq!(own_threads(&client, "wait"), OwnThreads::default());
}
