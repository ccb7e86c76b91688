//! Listing the locks whose names match a pattern.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Error, LockClient, LockGuard, Locks};
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, connected, take, with_long_timeout, without_restart_guard,
};
use support::proxy::{Mode, proxied};
use support::servers::Servers;

/// The names that are listed, sorted. Panics if one is listed twice.
#[track_caller]
pub(crate) fn names(locks: Locks<'_>) -> Vec<Vec<u8>> {
    let mut names = BTreeSet::new();
    for lock in locks {
        let lock = lock.unwrap_or_else(|error| panic!("a majority answers: {error}"));
        let name = lock.resource();
        assert!(
            names.insert(name.as_bytes().to_vec()),
            "{name} is listed twice"
        );
    }
    names.into_iter().collect()
}

#[test]
fn locks_of_all_kinds_are_listed_once_and_nothing_else() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    assert_eq!(names(client.locks("*")), [b""; 0]);

    let held = take(&client, "held", LONG);
    let fenced = client
        .request("fenced")
        .fenced()
        .ttl(LONG)
        .try_lock()
        .unwrap()
        .unwrap();
    let read = client
        .request("read")
        .shared()
        .ttl(LONG)
        .try_lock()
        .unwrap()
        .unwrap();
    let both = client
        .request_all(["one", "two"])
        .ttl(LONG)
        .try_lock()
        .unwrap()
        .unwrap();
    let permit = client
        .request("pool")
        .one_of(2)
        .ttl(LONG)
        .try_lock()
        .unwrap()
        .unwrap();
    let labelled = client
        .request(b"\xff\n")
        .owner("x".repeat(200))
        .ttl(LONG)
        .try_lock()
        .unwrap()
        .unwrap();
    let other = all_nodes_client(servers.urls());
    let waiting = support::queue::spawn_waiter(move || {
        drop(other.request("held").ttl(LONG).lock().unwrap());
    });
    let has_waiter = || !client.inspect("held").unwrap().waiters.is_empty();
    assert!(eventually(LIMIT, has_waiter));
    // On one node, as what is left of a failed attempt.
    servers[2].command(&["SET", "left", "value", "PX", "50000"]);
    // None of these is a lock.
    servers[1].command(&["SET", "lasting", "value"]);
    servers[1].command(&["SET", "long", &"x".repeat(2_000), "PX", "50000"]);
    servers[1].command(&["RPUSH", "list", "a"]);
    servers[1].command(&["PEXPIRE", "list", "50000"]);

    let expected: [&[u8]; 8] = [
        b"fenced", b"held", b"left", b"one", b"pool", b"read", b"two", b"\xff\n",
    ];
    assert_eq!(names(client.locks("*")), expected);
    assert_eq!(names(client.locks("[ho]*e[dl]*")), [b"held"]);
    assert_eq!(names(client.locks("t?o")), [b"two"]);
    assert_eq!(names(client.locks(b"\xff*")), [b"\xff\n"]);
    let held_now = client.locks("held").next().unwrap().unwrap();
    assert!(held_now.resource() == "held" && client.inspect(&held_now).is_ok());

    drop((held, fenced, read, both, permit, labelled));
    waiting.join().unwrap();
    assert!(eventually(LIMIT, || names(client.locks("*")) == [b"left"]));
}

#[test]
fn the_prefix_is_no_pattern_and_no_part_of_a_name() {
    let servers = Servers::start(1);
    let prefix = r"a*[b]?\:";
    let client = with_long_timeout(servers.urls())
        .key_prefix(prefix)
        .build()
        .unwrap();
    let lock = take(&client, "job", LONG);
    for key in ["axb?:job", r"axxb\:job", "job", r"a*[b]x\:job"] {
        servers[0].command(&["SET", key, "value", "PX", "50000"]);
    }
    assert_eq!(names(client.locks("*")), [b"job"]);
    assert_eq!(names(client.locks("*x*")), [b""; 0]);
    drop(lock);
}

#[test]
fn many_locks_are_listed_in_steps_and_long_names_too() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let locks: Vec<LockGuard> = (0..2_500)
        .map(|number| take(&client, format!("job:{number:04}"), LONG))
        .collect();
    let found = names(client.locks("job:*"));
    assert_eq!(found.len(), locks.len());
    let asked = support::locks::calls(&servers[0], "scan");
    assert!(
        asked >= 5,
        "a server does not list thousands of names in one step, but in {asked}"
    );
    drop(locks);
    // More than a reply may have in all.
    let long = |number| format!("{number:02}{}", "x".repeat(20_000));
    let locks: Vec<LockGuard> = (0..40)
        .map(|number| take(&client, long(number), LONG))
        .collect();
    assert_eq!(names(client.locks("*")).len(), locks.len());
}

#[test]
fn a_majority_of_the_nodes_is_enough_and_fewer_are_an_error_at_the_end() {
    let mut servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let lock = take(&client, "job", LONG);
    servers[0].kill();
    assert_eq!(names(client.locks("*")), [b"job"]);
    servers[1].kill();
    let mut locks = client.locks("*");
    assert!(
        locks.next().unwrap().unwrap().resource() == "job",
        "the third node has it"
    );
    let Some(Err(Error::NoQuorum(error))) = locks.next() else {
        panic!("two of three nodes are down")
    };
    assert_eq!((error.answered(), error.reports().len()), (1, 3));
    assert!(locks.next().is_none());
    drop(lock);
}

#[test]
fn a_node_that_is_slow_once_is_asked_again() {
    let servers = Servers::start(1);
    let (proxies, urls) = proxied(&servers);
    let timeout = Duration::from_millis(300);
    // Without an I/O thread, the round itself would wait for the node.
    let client = without_restart_guard(urls)
        .node_timeout(timeout)
        .io_thread(true);
    let client = connected(client.build().unwrap());
    let guards: Vec<LockGuard> = (0..600)
        .map(|number| take_when_quick(&client, number))
        .collect();
    let mut locks = client.locks("*");
    assert!(locks.next().unwrap().is_ok());
    // The next step's answer comes after its deadline, and that of the step after it in time.
    let before = proxies[0].forwarded();
    proxies[0].set(Mode::Delay {
        to_server: Duration::ZERO,
        to_client: timeout + timeout / 3,
    });
    let rest = thread::scope(|scope| {
        let rest = scope.spawn(|| locks.map(|lock| lock.map(|_| 1)).sum::<Result<usize, _>>());
        // Not once the server has carried it out: the proxy may read the answer only after that.
        assert!(eventually(LIMIT, || proxies[0].forwarded() > before));
        proxies[0].set(Mode::Pass);
        rest.join().unwrap()
    });
    assert_eq!(rest, Ok(guards.len() - 1));
}

/// The lock, on a machine that may be too busy for a short timeout.
#[track_caller]
fn take_when_quick(client: &LockClient, number: usize) -> LockGuard {
    let mut taken = None;
    let try_once = || {
        taken = client.try_lock(number.to_string(), LONG).ok().flatten();
        taken.is_some()
    };
    assert!(eventually(LIMIT, try_once));
    taken.expect("it was taken")
}

/// Locks that are held all the time, while other keys come and go and the servers' tables grow and
/// shrink: each listing has each of them once. `REDLATCH_LISTINGS` is how many, for longer runs.
/// Were the tables small in some listings and large in others?
fn has_varied(sizes: &BTreeSet<usize>) -> bool {
    sizes
        .first()
        .zip(sizes.last())
        .is_some_and(|(least, most)| least * 2 < *most)
}

#[test]
fn locks_that_stay_are_listed_once_while_the_tables_grow_and_shrink() {
    let servers = Servers::start(3);
    let client = all_nodes_client(servers.urls());
    let name = |number: usize| format!("job:{number:04}");
    let held: Vec<LockGuard> = (0..700)
        .map(|number| take(&client, name(number), LONG))
        .collect();
    let expected: Vec<Vec<u8>> = (0..held.len())
        .map(|number| name(number).into_bytes())
        .collect();
    let is_over = AtomicBool::new(false);
    // Before the locks end.
    let end = Instant::now() + LONG / 5 * 4;
    let listings = std::env::var("REDLATCH_LISTINGS").map_or(20, |count| count.parse().unwrap());
    let sizes = thread::scope(|scope| {
        let fill = "for i=1,ARGV[1] do redis.call('SET', 'job:x' .. i, 'v', 'PX', 50000) end";
        let clear = "for i=1,ARGV[1] do redis.call('DEL', 'job:x' .. i) end";
        for server in servers.iter() {
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    for (script, count) in [(fill, "6000"), (fill, "200"), (clear, "6000")] {
                        server.command(&["EVAL", script, "0", count]);
                        // The server's table shrinks in its own time.
                        thread::sleep(Duration::from_millis(120));
                    }
                }
            });
        }
        let other = all_nodes_client(servers.urls());
        let is_over_too = &is_over;
        scope.spawn(move || {
            for number in (0_usize..).take_while(|_| !is_over_too.load(Relaxed)) {
                drop(other.try_lock(format!("job:y{}", number % 50), LONG));
            }
        });
        let list = || {
            let all = names(client.locks("job:*"));
            let stayed = all.iter().filter(|name| !b"xy".contains(&name[4])).cloned();
            assert_eq!(stayed.collect::<Vec<_>>(), expected);
            all.len()
        };
        let listed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut sizes = BTreeSet::new();
            // On a busy machine it takes longer until a listing meets small tables.
            let goes_on = |count, sizes: &_| count < listings || !has_varied(sizes);
            for count in 0_usize.. {
                if Instant::now() >= end || !goes_on(count, &sizes) {
                    break;
                }
                sizes.insert(list());
            }
            sizes
        }));
        is_over.store(true, Relaxed);
        listed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    assert!(has_varied(&sizes) || listings < 20, "{sizes:?} names");
    drop(held);
}
