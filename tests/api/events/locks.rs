//! Events: which ones a client reports about its locks, in which order, and how often.

use std::time::Duration;

use redlatch::event::AttemptOutcome;
use redlatch::{Error, LockClient, LossReason, Released};
use support::eventually;
use support::journal::{Journal, names, recorded_client};
use support::locks::{
    LIMIT, LONG, all_nodes_client, await_value, pause, resume, take, with_long_timeout,
};
use support::loss::loss_in;
use support::queue::{finish, spawn_waiter};
use support::secret::SECRET;
use support::servers::Servers;

const SHORT: Duration = Duration::from_millis(100);

#[test]
fn acquiring_and_releasing_a_free_lock_gives_three_events() {
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    take(&client, "free", LONG).release().unwrap();
    let names_at_first = names(&journal.entries());
    assert_eq!(
        names_at_first,
        [
            "node_up", "node_up", "node_up", "attempt", "acquired", "released"
        ],
        "events about nodes come first"
    );
    let events = journal.take_lock_events();
    assert!(events.iter().all(|entry| entry.about == "free"));
    let [attempt, acquired, released] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (attempt.attempts, attempt.outcome),
        (1, Some(AttemptOutcome::Granted))
    );
    assert_eq!(acquired.attempts, 1);
    assert!(acquired.span >= attempt.span && attempt.span > Duration::ZERO);
    assert!(acquired.validity < LONG && acquired.validity > LONG / 2);
    assert_eq!(released.released, Some(Released::InTime));
    assert!(released.span > attempt.span, "it counts from the request");

    // A lock that is dropped: nothing waits for the nodes' replies.
    drop(take(&client, "free", LONG));
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "acquired", "released"]);
    assert_eq!(events[2].released, None);
    assert_eq!(journal.entries().len(), 3, "the nodes have not changed");
}

#[test]
fn events_name_the_resource_without_the_key_prefix() {
    let servers = Servers::start(1);
    let journal = Journal::default();
    let builder = with_long_timeout(servers.urls())
        .key_prefix("billing:")
        .restart_guard(false);
    let client = builder.on_event(journal.recorder()).build().unwrap();
    drop(take(&client, [b'a', b'\n', 0xFF], LONG));
    let events = journal.take_lock_events();
    assert_eq!(events.len(), 3);
    assert!(
        events
            .iter()
            .all(|entry| entry.text.starts_with("'a\\n\\xff' ")),
        "{events:?}"
    );
}

#[test]
fn each_attempt_for_a_held_lock_is_an_event() {
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let held = take(&all_nodes_client(servers.urls()), "held", LONG);

    assert!(client.try_lock("held", LONG).unwrap().is_none());
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["attempt", "contended"]);
    assert_eq!(events[0].outcome, Some(AttemptOutcome::Contended));
    assert_eq!(events[1].attempts, 1);

    // Without the nodes' queue, in which a waiting call asks only in its turn.
    let builder = with_long_timeout(servers.urls()).queue(false);
    let (client, journal) = recorded_client(builder);
    let waiting = std::thread::spawn(move || client.lock("held", LONG).unwrap());
    assert!(eventually(LIMIT, || journal
        .entries()
        .iter()
        .any(|entry| entry.attempts == 3)));
    held.release().unwrap();
    drop(finish(waiting));
    let events = journal.take_lock_events();
    let attempts = events.len() - 2;
    assert!(attempts > 3);
    for (index, entry) in events[..attempts].iter().enumerate() {
        assert_eq!((entry.name, entry.attempts), ("attempt", index as u64 + 1));
        let is_last = index + 1 == attempts;
        let expected = if is_last {
            AttemptOutcome::Granted
        } else {
            AttemptOutcome::Contended
        };
        assert_eq!(entry.outcome, Some(expected));
    }
    assert_eq!(names(&events[attempts..]), ["acquired", "released"]);
    assert_eq!(events[attempts].attempts, attempts as u64);
    let all: Duration = events.iter().take(attempts).map(|entry| entry.span).sum();
    assert!(events[attempts].span > all);
}

#[test]
fn a_handoff_is_an_event_released_and_an_event_acquired() {
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let guard = take(&client, "line", LONG);
    assert!(
        client
            .request("line")
            .ttl(LONG)
            .try_lock_for(SHORT)
            .unwrap()
            .is_none()
    );
    let waiting = client.clone();
    let next = spawn_waiter(move || waiting.lock("line", LONG).unwrap());
    let own_wait = "held_by_this_thread";
    let events = names(&journal.take_lock_events());
    assert_eq!(events, ["attempt", "acquired", own_wait, "contended"]);

    assert_eq!(guard.release(), Ok(()));
    let guard = finish(next);
    let mut events = journal.take_lock_events();
    // From two threads, at the same time.
    events.sort_by_key(|entry| entry.name);
    assert_eq!(names(&events), ["acquired", "attempt", "released"]);
    assert_eq!(
        (events[0].attempts, events[2].released),
        (1, Some(Released::InTime))
    );
    assert!(
        events[0].span > events[1].span,
        "it waited in the queue, and then for the nodes"
    );
    assert!(events[2].span > Duration::ZERO);

    drop(guard);
    assert_eq!(names(&journal.take_lock_events()), ["released"]);
}

#[test]
fn a_thread_that_only_waited_in_the_queue_reports_no_attempt() {
    let servers = Servers::start(1);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let _guard = take(&client, "line", LONG);
    journal.take_lock_events();
    assert!(
        client
            .request("line")
            .ttl(LONG)
            .try_lock_for(SHORT)
            .unwrap()
            .is_none()
    );
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["held_by_this_thread", "contended"]);
    assert!(
        events[1].attempts == 0 && events[1].span >= SHORT,
        "{events:?}"
    );
}

#[test]
fn extensions_are_reported_and_a_loss_is_reported_once() {
    let servers = Servers::start(3);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let mut guard = take(&client, "extended", LONG / 2);
    journal.take_lock_events();
    guard.extend(LONG).unwrap();
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["extended"]);
    assert!(events[0].validity > LONG / 2 && events[0].span > Duration::ZERO);
    assert!(matches!(guard.extend(Duration::MAX), Err(Error::Ttl(_))));
    assert_eq!(journal.take_lock_events().len(), 0, "nothing was sent");

    servers
        .iter()
        .for_each(|server| drop(server.command(&["DEL", "extended"])));
    for _ in 0..2 {
        assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Gone));
    }
    assert!(matches!(guard.release(), Err(Error::Lost(_))));
    let events = journal.take_lock_events();
    assert_eq!(names(&events), ["lost", "released"]);
    assert!(events[0].text.contains("no majority"), "{}", events[0].text);
    assert_eq!(events[1].released, Some(Released::TooLate));
}

#[test]
fn an_attempt_without_replies_is_reported_as_failed() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let builder = LockClient::builder()
        .nodes(servers.urls())
        .restart_guard(false);
    let builder = builder.node_timeout(SHORT * 3).on_event(journal.recorder());
    let client = builder.build().unwrap();
    let mut guard = client.lock("before", LONG).unwrap();
    journal.take_lock_events();
    pause(&servers, 2);
    let error = client.try_lock("failed", LONG).unwrap_err();
    assert!(matches!(error, Error::NoQuorum(_)), "{error}");
    assert!(matches!(guard.extend(LONG), Err(Error::NoQuorum(_))));
    assert!(guard.release().is_err());
    resume(&servers, 2);
    let events = journal.take_lock_events();
    assert_eq!(
        names(&events),
        ["attempt", "failed", "not_extended", "released"]
    );
    assert_eq!(events[0].outcome, Some(AttemptOutcome::NoQuorum));
    assert!(
        events[1].text.ends_with(&error.to_string()),
        "{}",
        events[1].text
    );
    assert!(events[2].validity > Duration::ZERO);
    assert_eq!(events[3].released, None);
    // A request that is refused before anything is sent.
    assert!(client.try_lock("refused", Duration::MAX).is_err());
    assert!(client.try_lock("", LONG).is_err());
    assert_eq!(journal.take_lock_events().len(), 0);
}

#[test]
fn a_wait_for_the_end_of_a_quarantine_is_reported_once() {
    let servers = Servers::start(3);
    let journal = Journal::default();
    let max_ttl = Duration::from_secs(4);
    let builder = with_long_timeout(servers.urls())
        .restart_guard(true)
        .max_ttl(max_ttl);
    let client = builder
        .wait_for_all(true)
        .on_event(journal.recorder())
        .build()
        .unwrap();
    assert!(client.try_lock("fresh", SHORT).is_err());
    assert_eq!(
        names(&journal.take_lock_events()),
        ["attempt", "failed"],
        "a request that does not wait reports no quarantine"
    );

    let waiting = std::thread::spawn({
        let client = client.clone();
        move || client.lock("fresh", max_ttl).unwrap().release()
    });
    let is_reported = || {
        journal
            .entries()
            .iter()
            .any(|entry| entry.name == "quarantined")
    };
    assert!(
        eventually(LIMIT, is_reported) && !waiting.is_finished(),
        "reported before the wait"
    );
    finish(waiting).unwrap();
    let events = journal.take_lock_events();
    let [attempt, quarantined, rest @ ..] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (attempt.outcome, &*attempt.about),
        (Some(AttemptOutcome::NoQuorum), "fresh")
    );
    assert_eq!(
        (quarantined.name, &*quarantined.about),
        ("quarantined", "fresh")
    );
    assert!(
        quarantined.span > Duration::ZERO && quarantined.span <= max_ttl,
        "{events:?}"
    );
    let text = &quarantined.text;
    assert!(
        servers.urls().iter().all(|url| text.contains(url)),
        "{text}"
    );
    assert!(
        text.contains("max_ttl") && text.contains("restart_guard"),
        "{text}"
    );
    assert!(
        rest.iter().all(|entry| entry.name != "quarantined"),
        "{events:?}"
    );
    assert_eq!(names(&rest[rest.len() - 2..]), ["acquired", "released"]);
}

#[test]
fn no_event_shows_a_password_or_a_token() {
    let mut servers = Servers::start_with(3, &["--requirepass", SECRET]);
    let (client, journal) = recorded_client(with_long_timeout(servers.urls()));
    let mut guard = take(&client, "quiet", LONG);
    let token = await_value(&servers[0], "quiet");
    guard.extend(LONG).unwrap();
    servers[0].kill();
    guard.extend(LONG).unwrap();
    guard.release().unwrap();
    // A server that quotes what the client sent.
    let wrong = servers[1].url().replace(SECRET, &format!("{SECRET}-wrong"));
    let journal_of_wrong = Journal::default();
    let builder = with_long_timeout([wrong])
        .restart_guard(false)
        .on_event(journal_of_wrong.recorder());
    assert!(builder.build().unwrap().try_lock("quiet", LONG).is_err());

    // The journal checks each event for the password.
    let events = journal.entries();
    let wrong = journal_of_wrong.entries();
    assert!(names(&wrong).contains(&"node_down") && names(&wrong).contains(&"failed"));
    assert!(names(&events).contains(&"node_down") && names(&events).contains(&"extended"));
    let token = token.escape_ascii().to_string();
    assert!(
        events.iter().all(|entry| !entry.text.contains(&token)),
        "{events:?}"
    );
}
