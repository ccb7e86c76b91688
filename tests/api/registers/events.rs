//! What a client reports of its registers, and of the nodes that vote on them.

use std::thread;

use redlatch::register::VALUE_MAX;
use redlatch::{LockClient, RegisterError};
use support::eventually;
use support::journal::{Entry, Journal, names};
use support::locks::{LIMIT, with_long_timeout};
use support::redis::Server;

use super::{formed, read, set};

fn recorded(servers: &[Server]) -> (LockClient, Journal) {
    let journal = Journal::default();
    let builder = with_long_timeout(servers.iter().map(Server::url));
    (
        builder
            .on_event(journal.recorder())
            .build()
            .expect("the settings are good"),
        journal,
    )
}

fn rounds(entries: &[Entry]) -> Vec<(&'static str, u64)> {
    entries
        .iter()
        .map(|entry| (entry.name, entry.attempts))
        .collect()
}

#[test]
fn reads_and_changes_are_reported_with_their_rounds() {
    let (servers, _) = formed(3);
    let (client, journal) = recorded(&servers);
    let register = client.register("a\n").unwrap();
    assert_eq!(read(&register), None);
    set(&register, "one");
    let seen = register.read().unwrap().unwrap().version();
    register.compare_and_set(None, b"two").unwrap().unwrap_err();
    register
        .compare_and_set(Some(seen), b"two")
        .unwrap()
        .unwrap();
    register.delete().unwrap();
    let events = journal.take_lock_events();
    let expected = [
        ("register_read", 1),
        ("register_changed", 2),
        ("register_read", 1),
        ("register_changed", 1),
        ("register_changed", 1),
        ("register_changed", 1),
    ];
    assert_eq!(rounds(&events), expected);
    assert!(
        events
            .iter()
            .all(|entry| entry.about == "a\n" && !entry.span.is_zero())
    );
    assert!(
        events[1]
            .text
            .starts_with("'a\\n' register changed: rounds 2, took "),
        "{events:?}"
    );
    // Refused at once.
    register
        .compare_and_set(None, &[0; VALUE_MAX + 1])
        .unwrap_err();
    assert_eq!(journal.take_lock_events().len(), 0);
}

#[test]
fn a_call_that_fails_is_reported_with_its_error() {
    let (mut servers, _) = formed(3);
    let (client, journal) = recorded(&servers);
    let register = client.register("a").unwrap();
    set(&register, "one");
    servers[0].stop();
    servers[1].stop();
    let error = register.read().unwrap_err();
    assert!(matches!(error, RegisterError::NoQuorum { .. }), "{error}");
    register.delete().unwrap_err();
    let events = journal.take_lock_events();
    assert_eq!(
        names(&events),
        ["register_changed", "register_failed", "register_failed"]
    );
    assert!(
        events[1].text.ends_with(&error.to_string()),
        "{} {error}",
        events[1].text
    );
}

#[test]
fn the_lock_behind_which_clients_take_turns_is_not_reported() {
    let (servers, _) = formed(3);
    let journals: Vec<Journal> = thread::scope(|scope| {
        let contend = || {
            let (client, journal) = recorded(&servers);
            let register = client.register("a").unwrap();
            for _ in 0..30 {
                // With many clients, a change may end without being known.
                match register.change(|_| Some(vec![7])) {
                    Ok(_) | Err(RegisterError::Unknown) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            journal
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(contend)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let all: Vec<Entry> = journals
        .iter()
        .flat_map(Journal::take_lock_events)
        .collect();
    assert_eq!(all.len(), 6 * 30);
    assert!(all.iter().all(|entry| entry.about == "a"), "{all:?}");
    assert!(
        all.iter().any(|entry| entry.attempts > 3),
        "nobody came first"
    );
}

#[test]
fn nodes_are_reported_as_they_lose_their_votes_and_get_them_back() {
    let (servers, first) = formed(3);
    let (client, journal) = recorded(&servers);
    let register = client.register("a").unwrap();
    set(&register, "one");
    let lost = client.nodes()[2].url.clone();
    let of_node = |journal: &Journal| {
        let entries = journal.entries();
        let entries = entries
            .iter()
            .filter(|it| it.about == *lost && it.name != "node_up");
        entries
            .map(|entry| entry.text[lost.len() + 1..].to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(of_node(&journal), ["has a vote on registers"]);
    servers[2].command(&["FLUSHALL"]);
    // Looks at the nodes that have no vote come a second apart.
    assert!(eventually(LIMIT, || {
        set(&register, "two");
        of_node(&journal).len() == 2
    }));
    let why = "has no vote on registers: it is not a member, or has forgotten that it is";
    assert_eq!(of_node(&journal)[1], why);
    let two = client.nodes();
    assert!(!two[2].registers.unwrap().is_member(), "{two:?}");
    assert_eq!(of_node(&journal).len(), 2, "reported once");
    // By another client.
    assert_eq!(first.registers().repair().unwrap().len(), 1);
    assert!(eventually(LIMIT, || {
        set(&register, "three");
        of_node(&journal).len() == 3
    }));
    assert_eq!(of_node(&journal)[2], "has a vote on registers");
    let voters = |journal: &Journal| {
        let entries = journal.entries();
        entries
            .iter()
            .filter(|entry| entry.name == "node_votes")
            .count()
    };
    assert_eq!(voters(&journal), 4);
}
