//! Keys with data that is not a lock: who is refused because of it is told so, and nobody waits for
//! what never ends.

use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard, LockRequest, NotALock};
use support::eventually;
use support::fencing::scripts;
use support::journal::Journal;
use support::locks::{LIMIT, LONG, take, with_long_timeout, without_restart_guard};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{await_keys, await_queued};

/// Carries this out on each server, instead of what was there before. Never is there nothing: a
/// waiter would take the lock.
fn put(servers: &Servers, words: &[&str]) {
    let key = words[1];
    let other_key = "put here first";
    let mut words = words.to_vec();
    words[1] = other_key;
    for server in servers.iter() {
        server.command(&words);
        server.command(&["RENAME", other_key, key]);
    }
}

#[track_caller]
fn refused(result: Result<Option<LockGuard>, Error>) -> (String, NotALock) {
    match result {
        Err(error @ Error::NotALock { reason, .. }) => (error.to_string(), reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_would_wait_for_ever_for_data_that_is_no_lock_is_told_at_once() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls())
        .key_prefix("app:")
        .build()
        .unwrap();
    let long = "x".repeat(1024);
    let others: [(&[&str], NotALock); 5] = [
        (&["SET", "app:x", "data"], NotALock::NoTtl),
        (&["SET", "app:x", ""], NotALock::Empty),
        (&["SET", "app:x", &long], NotALock::TooLong),
        (&["HSET", "app:x", "field", "data"], NotALock::NotAString),
        (&["LPUSH", "app:x", "data"], NotALock::NotAString),
    ];
    for (words, expected) in others {
        put(&servers, words);
        let request = || client.request("x").ttl(LONG);
        let start = Instant::now();
        for (case, result) in [
            ("try_lock", request().try_lock()),
            ("try_lock_for", request().try_lock_for(LIMIT * 10)),
            ("lock", request().lock().map(Some)),
            ("reader", request().shared().lock().map(Some)),
            ("permit", request().one_of(2).try_lock_for(LIMIT * 10)),
            ("fenced", request().fenced().lock().map(Some)),
            (
                "set",
                client.request_all(["free", "x"]).ttl(LONG).lock().map(Some),
            ),
        ] {
            let (text, reason) = refused(result);
            assert_eq!(reason, expected, "{case} {words:?}");
            assert!(
                text.contains("'app:x'") && text.contains("key_prefix"),
                "{case}: {text}"
            );
            assert!(
                servers.urls().iter().all(|url| text.contains(url)),
                "{case}: {text}"
            );
        }
        assert!(start.elapsed() < LIMIT * 5);
    }
    for server in servers.iter() {
        server.command(&["DEL", "app:x"]);
    }
    await_keys(&servers, &[]);
    take(&client, "x", LONG).release().unwrap();
}

#[test]
fn what_ends_by_itself_or_may_be_a_lock_of_another_program_is_waited_for_and_reported_once() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let builder = with_long_timeout(servers.urls()).on_event(journal.recorder());
    let client = builder.build().unwrap();
    // As redis-py sets it without a timeout.
    let redis_py = "d0f7eeeae93a11f1a51e02fc00000001";
    put(&servers, &["SET", "name", redis_py]);
    for _ in 0..3 {
        assert!(client.try_lock("name", LONG).unwrap().is_none());
    }
    let wait = Duration::from_millis(100);
    assert!(
        client
            .request("name")
            .ttl(LONG)
            .try_lock_for(wait)
            .unwrap()
            .is_none()
    );
    let reported = || {
        let entries = journal.take_lock_events();
        let found = entries
            .into_iter()
            .filter(|entry| entry.name == "not_a_lock");
        found
            .map(|entry| (entry.about, entry.text))
            .collect::<Vec<_>>()
    };
    let [(about, text)] = &reported()[..] else {
        panic!("it is reported once")
    };
    assert_eq!(about, "name");
    assert!(text.contains("is not a lock: it has no ttl"), "{text}");

    put(&servers, &["HSET", "cached", "field", "data"]);
    let ends_in = |millis: &str| {
        servers
            .iter()
            .for_each(|server| drop(server.command(&["PEXPIRE", "cached", millis])));
    };
    ends_in("60000");
    let waiting = client.clone();
    assert!(client.try_lock("cached", LONG).unwrap().is_none());
    assert_eq!(
        client.request("cached").other_data(),
        Some(NotALock::NotAString)
    );
    assert_eq!(client.request("another").other_data(), None);
    ends_in("700");
    let thread = spawn_waiter(move || waiting.request("cached").ttl(LONG).try_lock_for(LIMIT));
    assert!(finish(thread).unwrap().is_some(), "it has ended");
    assert_eq!(reported().len(), 1);
}

#[test]
fn locks_and_data_on_a_minority_are_no_news_and_are_asked_about_once() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let held = take(
        &with_long_timeout(servers.urls()).build().unwrap(),
        "name",
        LONG,
    );
    let builder = with_long_timeout(servers.urls()).wait_for_all(true);
    let client: LockClient = builder.on_event(journal.recorder()).build().unwrap();
    assert!(client.try_lock("name", LONG).unwrap().is_none());
    let before = scripts(&servers[0]);
    for _ in 0..20 {
        assert!(client.try_lock("name", LONG).unwrap().is_none());
    }
    // Each attempt is undone by one, the first one perhaps not yet, and none looks once more.
    let asked = scripts(&servers[0]) - before;
    assert!((20..=22).contains(&asked), "{asked}");
    servers[0].command(&["SET", "minority", "data"]);
    take(&client, "minority", LONG).release().unwrap();
    let entries = journal.take_lock_events();
    assert!(
        entries.iter().all(|entry| entry.name != "not_a_lock"),
        "{entries:?}"
    );
    drop(held);
}

#[test]
fn data_that_takes_the_place_of_a_lock_ends_the_waits_that_go_on() {
    let servers = Servers::start(3);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    // Without the nodes' queue, a waiter asks again and again.
    let asking = without_restart_guard(servers.urls())
        .queue(false)
        .build()
        .unwrap();
    let lock = take(
        &with_long_timeout(servers.urls()).build().unwrap(),
        "x",
        LONG,
    );
    for client in [&client, &asking] {
        assert!(
            client.try_lock("x", LONG).unwrap().is_none(),
            "it is believed to be a lock"
        );
    }
    type Change = for<'a> fn(LockRequest<'a>) -> LockRequest<'a>;
    let waits: [(&str, &LockClient, &[&str], Change); 6] = [
        ("lock", &client, &["x"], |request| request),
        ("another thread", &client, &["x"], |request| request),
        ("reader", &client, &["x"], |request| request.shared()),
        ("permit", &client, &["x"], |request| request.one_of(2)),
        ("set", &client, &["free", "x"], |request| request),
        ("without the queue", &asking, &["x"], |request| request),
    ];
    let waits = waits.map(|(case, client, names, change)| {
        let client = client.clone();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let wait = move || change(client.request_all(names).ttl(LONG)).lock().map(Some);
        (case, spawn_waiter(wait))
    });
    await_queued(&servers, "x", 4);
    put(&servers, &["HSET", "x", "field", "data"]);
    for (case, wait) in waits {
        let (text, reason) = refused(finish(wait));
        assert_eq!(reason, NotALock::NotAString, "{case}: {text}");
    }
    // A reply that comes right behind an error of an earlier request is not a vote.
    let is_refused = |client: &LockClient| {
        let result = client.try_lock("x", LONG);
        matches!(
            result,
            Err(Error::NotALock {
                reason: NotALock::NotAString,
                ..
            })
        )
    };
    for client in [client, asking] {
        assert!(eventually(LIMIT, || is_refused(&client)));
    }
    drop(lock);
}
