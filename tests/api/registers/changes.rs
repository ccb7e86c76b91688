//! Registers: reads, changes, deletion, and nodes that forget.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::register::{VALUE_MAX, Version};
use redlatch::{FencingToken, LockClient, RegisterError};
use support::cli;
use support::eventually;
use support::locks::LIMIT;

use super::{client, client_with_short_rounds, formed, keys, read, set, text};

#[test]
fn a_value_is_read_by_other_clients_as_it_was_changed() {
    let (servers, first) = formed(3);
    let second = client(&servers);
    let mine = first.register("a").unwrap();
    let other = second.register("a").unwrap();
    assert_eq!(read(&other), None);
    let mut last = set(&mine, "one");
    assert_eq!(read(&other), Some("one".to_owned()));
    for (register, word) in [
        (&mine, "two"),
        (&other, "three"),
        (&mine, "four"),
        (&mine, "five"),
    ] {
        let changed = register.change(|before| {
            let before = text(before).expect("there is a value");
            Some(format!("{before} {word}").into_bytes())
        });
        let version = changed.unwrap().version().unwrap();
        assert!(version > last);
        last = version;
    }
    let value = other.read().unwrap().unwrap();
    assert_eq!(
        text(Some(&value)),
        Some("one two three four five".to_owned())
    );
    assert_eq!(value.version(), last);
    let lock = first.lock("a", Duration::from_secs(5)).unwrap();
    assert_eq!(read(&mine), Some("one two three four five".to_owned()));
    lock.release().unwrap();
}

#[test]
fn compare_and_set_changes_only_the_version_that_was_seen() {
    let (servers, first) = formed(3);
    let mine = first.register("a").unwrap();
    let other = client(&servers).register("a").unwrap();
    let one = mine.compare_and_set(None, b"one").unwrap().unwrap();
    let refused = other.compare_and_set(None, b"two").unwrap().unwrap_err();
    assert_eq!(text(refused.as_ref()), Some("one".to_owned()));
    let two = other.compare_and_set(Some(one), b"two").unwrap().unwrap();
    assert!(two > one);
    let refused = mine
        .compare_and_set(Some(one), b"three")
        .unwrap()
        .unwrap_err();
    assert_eq!(text(refused.as_ref()), Some("two".to_owned()));
    assert_eq!(read(&mine), Some("two".to_owned()));
}

#[test]
fn a_smaller_fencing_token_writes_nothing() {
    let (servers, first) = formed(3);
    let mine = first.register("a").unwrap();
    let other = client(&servers).register("a").unwrap();
    let token = |number: u64| FencingToken::try_from(number).unwrap();
    assert!(mine.write_fenced(token(5), b"five").unwrap().is_ok());
    assert!(other.write_fenced(token(7), b"seven").unwrap().is_ok());
    assert!(
        other
            .write_fenced(token(7), b"seven again")
            .unwrap()
            .is_ok()
    );
    let stale = mine.write_fenced(token(5), b"late").unwrap().unwrap_err();
    assert_eq!(stale.by(), token(7));
    assert_eq!(
        stale.to_string(),
        "the lock with the fencing token 5 is lost: 7 has written since"
    );
    assert_eq!(read(&mine), Some("seven again".to_owned()));
    // A change without a token keeps the largest one.
    set(&mine, "any");
    assert!(mine.write_fenced(token(6), b"late").unwrap().is_err());
}

#[test]
fn a_deleted_register_leaves_no_key_and_its_versions_go_on() {
    let (servers, first) = formed(3);
    let mine = first.register("a").unwrap();
    let other = client(&servers).register("a").unwrap();
    let before = set(&mine, "one");
    assert_eq!(
        text(mine.delete().unwrap().as_ref()),
        Some("one".to_owned())
    );
    assert_eq!(read(&other), None);
    assert_eq!(other.delete().unwrap(), None);
    // The answer of the last node is read by a later call.
    let is_gone = || {
        let _ = (mine.read().unwrap(), other.read().unwrap());
        servers.iter().all(|server| keys(server) == 0)
    };
    assert!(
        eventually(LIMIT, is_gone),
        "{:?}",
        servers.iter().map(keys).collect::<Vec<_>>()
    );
    let after = set(&other, "two");
    assert!(after > before, "{after:?} {before:?}");
    assert_eq!(read(&mine), Some("two".to_owned()));
}

#[test]
fn what_changes_nothing_leaves_nothing() {
    let (servers, first) = formed(3);
    let mine = first.register("a").unwrap();
    let other = client(&servers).register("a").unwrap();
    for register in [&mine, &other] {
        assert_eq!(register.delete().unwrap(), None);
        let seen = Some(Version::from_u64(7));
        assert!(register.compare_and_set(seen, b"x").unwrap().is_err());
        let is_clean = || {
            assert_eq!(read(register), None);
            servers.iter().all(|server| keys(server) == 0)
        };
        assert!(eventually(LIMIT, is_clean));
    }
    set(&mine, "one");
    assert_eq!(read(&other), Some("one".to_owned()));
}

#[test]
fn while_a_node_is_down_a_deletion_leaves_its_tombstones() {
    let (servers, _former) = formed(3);
    let client = client_with_short_rounds(&servers);
    let register = client.register("a").unwrap();
    set(&register, "one");
    servers[2].pause();
    register.delete().unwrap();
    assert_eq!(read(&register), None);
    assert_eq!(keys(&servers[0]), 2);
    set(&client.register("b").unwrap(), "stays");
    // What is left cannot be removed either without it.
    let swept = client.registers().sweep().unwrap();
    assert_eq!((swept.values, swept.removed, swept.left), (1, 0, 1));
    servers[2].resume();
    // It had the value, and is outvoted.
    servers[0].pause();
    assert_eq!(read(&register), None);
    servers[0].resume();
    let is_clean = || client.registers().sweep().unwrap().left == 0;
    assert!(eventually(LIMIT, is_clean));
    for server in servers.iter() {
        assert_eq!(
            server.command(&["KEYS", "a:*"]),
            cli::Value::Array(Vec::new())
        );
    }
    let names: Vec<String> = client
        .registers()
        .list("*")
        .map(|register| register.unwrap().name().to_string())
        .collect();
    assert_eq!(names, ["b"]);
    assert!(client.locks("*").next().is_none());
}

#[test]
fn a_node_down_or_frozen_costs_no_pause() {
    let (mut servers, client) = formed(3);
    let register = client.register("a").unwrap();
    set(&register, "zero");
    let timed = |work: &dyn Fn()| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    let patience = Duration::from_secs(1);
    servers[0].pause();
    for number in 0..20 {
        let took = timed(&|| _ = set(&register, &number.to_string()));
        assert!(took < patience, "{took:?}");
        assert_eq!(read(&register), Some(number.to_string()));
    }
    servers[0].resume();
    servers[1].kill();
    for number in 20..40 {
        let took = timed(&|| _ = set(&register, &number.to_string()));
        assert!(took < patience, "{took:?}");
        assert_eq!(read(&register), Some(number.to_string()));
    }
}

#[test]
fn threads_and_processes_count_together_and_lose_nothing() {
    const CLIENTS: usize = 3;
    const THREADS: usize = 4;
    const CHANGES: usize = 25;
    let (servers, _) = formed(3);
    let clients: Vec<LockClient> = (0..CLIENTS).map(|_| client(&servers)).collect();
    let versions = std::sync::Mutex::new(BTreeSet::new());
    let unsure = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in &clients {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let counter = client.register("counter").unwrap();
                    for _ in 0..CHANGES {
                        let changed = counter.change(|value| {
                            let count: usize = text(value).map_or(0, |it| it.parse().unwrap());
                            Some((count + 1).to_string().into_bytes())
                        });
                        // More than eight others have come before it could look.
                        if changed
                            .as_ref()
                            .is_err_and(|error| *error == RegisterError::Unknown)
                        {
                            unsure.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                        let version = changed.unwrap().version().unwrap();
                        assert!(
                            versions.lock().unwrap().insert(version),
                            "{version:?} twice"
                        );
                    }
                });
            }
        }
    });
    let sure = versions.into_inner().unwrap().len();
    let unsure = unsure.into_inner();
    assert!(
        sure + unsure == CLIENTS * THREADS * CHANGES && unsure < 10,
        "{unsure} are unsure"
    );
    let count: usize = read(&clients[0].register("counter").unwrap())
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        (sure..=sure + unsure).contains(&count),
        "{count} of {sure} and {unsure}"
    );
}

#[test]
fn one_of_many_creates_it_and_the_others_see_the_result() {
    let (servers, _) = formed(3);
    let winners = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let client = client(&servers);
            let winners = &winners;
            scope.spawn(move || {
                let once = client.register("once").unwrap();
                let result = once
                    .compare_and_set(None, number.to_string().as_bytes())
                    .unwrap();
                if result.is_ok() {
                    winners.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(winners.load(Ordering::Relaxed), 1);
}

#[test]
fn a_call_that_waits_returns_the_next_value() {
    let (servers, first) = formed(3);
    let mine = first.register("a").unwrap();
    let other = client(&servers).register("a").unwrap();
    let seen = set(&mine, "one");
    thread::scope(|scope| {
        let waits = scope.spawn(|| other.wait_for_change(Some(seen), LIMIT).unwrap());
        set(&mine, "two");
        assert_eq!(text(waits.join().unwrap().as_ref()), Some("two".to_owned()));
    });
    let value = other.wait_for_change(None, Duration::ZERO).unwrap();
    assert_eq!(text(value.as_ref()), Some("two".to_owned()));
}

#[test]
fn what_cannot_be_a_register_is_refused() {
    let (servers, client) = formed(3);
    assert!(matches!(
        client.register(""),
        Err(RegisterError::Resource(_))
    ));
    assert!(matches!(
        client.register("a:redlatch:b"),
        Err(RegisterError::Resource(_))
    ));
    let register = client.register("a").unwrap();
    let length = VALUE_MAX + 1;
    let most = VALUE_MAX;
    let too_long = register.change(|_| Some(vec![0; length])).unwrap_err();
    assert_eq!(too_long, RegisterError::TooLong { length, most });
    register.change(|_| Some(vec![7; VALUE_MAX])).unwrap();
    assert_eq!(register.read().unwrap().unwrap().bytes(), [7; VALUE_MAX]);
    // Of another format, and no register at all.
    for (written, expected) in [
        (&b"0000000000000001aaaaaaaaaaaaaaaaaaaa\x02x"[..], Some(2)),
        (b"x", None),
    ] {
        for server in servers.iter() {
            server.command(&[&b"SET"[..], b":redlatch:register:b", written]);
        }
        let register = client.register("b").unwrap();
        for error in [
            register.read().err(),
            register.change(|_| Some(vec![1])).err(),
        ] {
            let Some(RegisterError::OtherFormat {
                url: Some(_),
                format,
            }) = error
            else {
                panic!()
            };
            assert_eq!(format, expected);
        }
    }
    for server in servers.iter() {
        server.command(&["LPUSH", ":redlatch:promise:c", "x"]);
    }
    let error = client
        .register("c")
        .unwrap()
        .change(|_| Some(vec![1]))
        .unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}
