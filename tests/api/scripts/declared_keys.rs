//! Each call of a script declares the keys that it touches, as some servers ask for, but for the
//! entries of waiters: who else waits is not known before.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method does not take a request of any lifetime"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use redlatch::{LockClient, LockRequest};
use support::cli::{Client, Value};
use support::eventually;
use support::locks::{LIMIT, LONG, all_nodes_client, value};
use support::queue::finish;
use support::servers::Servers;
use support::waiters::await_queued;

/// What scripts touch that was not declared, by the commands that touched it.
fn undeclared(monitor: &mut Client, end: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    let mut declared = Vec::new();
    let mut scripts = 0;
    loop {
        let line = String::from_utf8_lossy(&monitor.reply().expect("it goes on")).into_owned();
        if line.contains(end) {
            assert!(scripts > 0, "no script was called before {end}");
            return found;
        }
        let Some((head, command)) = line.split_once("] ") else {
            continue;
        };
        let words = words(command.trim_end());
        let name = words[0].to_ascii_lowercase();
        if !head.ends_with(" lua") {
            if name.starts_with("eval") {
                let count: usize = words[2].parse().expect("the number of keys");
                declared = words[3..3 + count].to_vec();
                scripts += 1;
            }
            continue;
        }
        let keys = match &*name {
            "time" | "publish" | "spublish" | "info" | "scan" => &[][..],
            "del" => &words[1..],
            _ => &words[1..2],
        };
        let is_missing =
            |key: &&String| !declared.contains(key) && !key.contains(":redlatch:lease:");
        // One that declares nothing reads what it finds.
        for key in keys
            .iter()
            .filter(is_missing)
            .filter(|_| !declared.is_empty())
        {
            found
                .entry(key.clone())
                .or_insert_with(BTreeSet::new)
                .insert(name.clone());
        }
    }
}

/// The words of a command, as `MONITOR` quotes them.
fn words(quoted: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None;
    let mut is_escaped = false;
    for character in quoted.chars() {
        match (&mut word, character) {
            (None, '"') => word = Some(String::new()),
            (None, _) => {}
            (Some(_), '"') if !is_escaped => words.extend(word.take()),
            (Some(text), _) => {
                is_escaped = character == '\\' && !is_escaped;
                text.push(character);
            }
        }
    }
    words
}

const HOUR: Duration = Duration::from_secs(3_600);

type Kind = fn(LockRequest<'_>) -> LockRequest<'_>;

/// Takes a lock, extends it, and hands it to a client that waits for it.
fn hand_over(servers: &Servers, held: Kind, wanted: Kind) {
    let client = || all_nodes_client(servers.urls());
    let mut guard = held(client().request("name").ttl(LONG))
        .lock()
        .expect("it is free");
    let waiting = client();
    let waiter = thread::spawn(move || {
        wanted(waiting.request("name").ttl(LONG))
            .lock()
            .map(redlatch::LockGuard::release)
    });
    await_queued(servers, "name", 1);
    guard.extend(LONG).expect("it is held");
    assert_eq!(guard.release(), Ok(()));
    assert_eq!(finish(waiter).expect("it is its turn"), Ok(()));
}

/// Takes a lock, extends it and releases it, twice: then what the first has left is there.
fn lock(servers: &Servers, client: &LockClient, kind: Kind) {
    for _ in 0..2 {
        let mut guard = kind(client.request("name").ttl(LONG))
            .lock()
            .expect("it is free");
        guard.extend(LONG).expect("it is held");
        drop(guard);
        assert!(eventually(LIMIT, || value(&servers[0], "name").is_none()));
    }
}

fn operate(client: &LockClient) {
    let guard = client.lock("name", LONG).expect("it is free");
    let seen = client.inspect("name").expect("the node answers");
    assert!(client.locks("*").next().is_some());
    assert_eq!(client.force_release(&seen), Ok(true));
    drop(guard);
}

fn use_registers(client: &LockClient) {
    client.registers().form(true).expect("the node is empty");
    let register = client.register("value").expect("the name is good");
    register
        .change(|_| Some(b"1".to_vec()))
        .expect("the node answers");
    assert!(register.read().expect("the node answers").is_some());
    register.delete().expect("the node answers");
}

#[test]
fn scripts_declare_all_keys_but_the_entries_of_waiters() {
    let servers = Servers::start(1);
    let client = all_nodes_client(servers.urls());
    let calls: [(&str, &dyn Fn()); 15] = [
        ("plain", &|| lock(&servers, &client, |it| it)),
        ("reader", &|| lock(&servers, &client, |it| it.shared())),
        ("permit", &|| lock(&servers, &client, |it| it.one_of(2))),
        ("fenced", &|| lock(&servers, &client, |it| it.fenced())),
        ("fenced reader", &|| {
            lock(&servers, &client, |it| it.shared().fenced());
        }),
        ("kept", &|| {
            lock(&servers, &client, |it| {
                it.hold_at_least(Duration::from_millis(30))
            });
        }),
        ("waited", &|| hand_over(&servers, |it| it, |it| it)),
        ("fenced waiter", &|| {
            hand_over(&servers, |it| it.fenced(), |it| it.fenced());
        }),
        ("reader waits", &|| {
            hand_over(&servers, |it| it, |it| it.shared());
        }),
        ("reader waited for", &|| {
            hand_over(&servers, |it| it.shared(), |it| it);
        }),
        ("permit waits", &|| {
            hand_over(&servers, |it| it.one_of(1), |it| it.one_of(1));
        }),
        ("several", &|| {
            let all = client
                .request_all(["name", "other"])
                .fenced()
                .ttl(LONG)
                .lock();
            assert_eq!(all.expect("they are free").release(), Ok(()));
        }),
        ("once", &|| {
            let once = client.request("report").ttl(LONG).once_per(HOUR);
            let run = once.run(|_| Ok::<_, redlatch::Error>(1));
            assert!(run.is_ok());
        }),
        ("operator", &|| operate(&client)),
        ("registers", &|| use_registers(&client)),
    ];
    let mut monitor = servers[0].client();
    assert_eq!(monitor.command(&["MONITOR"]), Value::ok());
    for (name, call) in calls {
        call();
        let end = format!("the end of {name}");
        servers[0].command(&["ECHO", &end]);
        let found = undeclared(&mut monitor, &end);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}
