//! Threads of one client stand in line, and the lock goes from one to the next in one round.

use crate::support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redlatch::{LockClient, LockGuard, Released};
use support::eventually;
use support::locks::{LIMIT, LONG, calls, gone, patient, take, thorough, value};
use support::queue::{finish, stand};
use support::redis::Server;
use support::servers::Servers;

/// A client whose lock goes round for as long as threads want it.
fn endless(urls: Vec<String>) -> LockClient {
    let endless = patient(urls).wait_for_all(true).handoff_limit(u32::MAX, LONG);
    endless.build().expect("the settings are good")
}

/// Stands in line for the lock and keeps it.
#[track_caller]
fn stand_for(client: &LockClient, name: &'static str) -> thread::JoinHandle<LockGuard> {
    let client = client.clone();
    stand(move || client.lock(name, LONG).expect("it is got in the end"))
}

/// How often the server has run a script, deleted a key, and set one, whether a script did it or
/// not: `INFO commandstats` counts what a script calls as well.
fn work(server: &Server) -> (u64, u64, u64) {
    let scripts = calls(server, "eval") + calls(server, "evalsha");
    (scripts, calls(server, "del"), calls(server, "set"))
}

fn difference(before: (u64, u64, u64), after: (u64, u64, u64)) -> (u64, u64, u64) {
    (after.0 - before.0, after.1 - before.1, after.2 - before.2)
}

#[test]
fn threads_are_served_in_the_order_in_which_they_came() {
    let servers = Servers::start(3);
    let client = endless(servers.urls());
    for round in 0..3 {
        let guard = take(&client, "order", LONG);
        let served = Arc::new(Mutex::new(Vec::new()));
        let arrive = |number: usize| {
            let (client, served) = (client.clone(), Arc::clone(&served));
            stand(move || {
                // However they wait and give it back.
                let guard = match number % 3 {
                    0 => client.lock("order", LONG).unwrap(),
                    _ => client.try_lock_for("order", LONG, LONG).unwrap().unwrap(),
                };
                served.lock().unwrap().push(number);
                if (number + round) % 2 == 0 { drop(guard) } else { drop(guard.release()) }
            })
        };
        let threads: Vec<_> = (0..9).map(arrive).collect();
        assert_eq!(*served.lock().unwrap(), []);
        drop(guard);
        threads.into_iter().for_each(finish);
        assert_eq!(*served.lock().unwrap(), (0..9).collect::<Vec<_>>());
    }
    assert!(gone(&servers, "order"));
}

#[test]
fn a_lock_is_handed_off_in_one_round_that_waits_for_no_release() {
    const HANDOFFS: u64 = 6;
    let servers = Servers::start(3);
    let client = endless(servers.urls());
    let guard = take(&client, "rounds", LONG);
    let threads: Vec<_> = (0..HANDOFFS).map(|_| stand_for(&client, "rounds")).collect();
    let before: Vec<_> = servers.iter().map(work).collect();
    assert_eq!(guard.release(), Ok(Released::InTime));
    let mut last = None;
    for thread in threads {
        // Dropped here, the one before goes to this one.
        drop(last.take());
        last = Some(finish(thread));
    }
    for (server, before) in servers.iter().zip(before) {
        // One script each, which sets the key. No key was deleted, and none set but by a script:
        // there was no `SET NX`.
        let work = difference(before, work(server));
        assert_eq!(work, (HANDOFFS, 0, HANDOFFS), "scripts, deletions, settings");
    }
    assert_eq!(last.unwrap().release(), Ok(Released::InTime));
    assert!(gone(&servers, "rounds"));
}

#[test]
fn a_lock_that_goes_round_is_never_free() {
    let servers = Servers::start(3);
    let client = endless(servers.urls());
    let guard = take(&client, "busy", LONG);
    let is_inside = Arc::new(AtomicBool::new(false));
    let arrive = |_| {
        let (client, is_inside) = (client.clone(), Arc::clone(&is_inside));
        stand(move || {
            for _ in 0..10 {
                let guard = client.lock("busy", LONG).unwrap();
                assert!(!is_inside.swap(true, Ordering::SeqCst), "two at once");
                thread::sleep(Duration::from_micros(300));
                assert!(is_inside.swap(false, Ordering::SeqCst));
                drop(guard);
            }
        })
    };
    let threads: Vec<_> = (0..10).map(arrive).collect();
    let last = Arc::new(AtomicBool::new(false));
    let other = patient(servers.urls()).build().unwrap();
    let poller = {
        let last = Arc::clone(&last);
        thread::spawn(move || {
            let mut attempts = 0;
            while !last.load(Ordering::SeqCst) {
                assert!(other.try_lock("busy", LONG).unwrap().is_none(), "it was free");
                attempts += 1;
            }
            attempts
        })
    };
    // Comes round less often than the others do, so that there is always somebody in line.
    let keeper = stand(move || {
        (0..7).for_each(|_| drop(client.lock("busy", LONG).unwrap()));
        client.lock("busy", LONG).unwrap()
    });
    drop(guard);
    let kept = finish(keeper);
    last.store(true, Ordering::SeqCst);
    assert!(finish(poller) > 0);
    drop(kept);
    threads.into_iter().for_each(finish);
    assert!(gone(&servers, "busy"));
}

/// Lets four threads of a client with this limit hold the lock again and again for so long, until
/// another client, as another process would have, got it five times. Never two at once.
fn others_get_their_turn(count: u32, time: Duration, hold: Duration) {
    let servers = Servers::start(3);
    let client = patient(servers.urls()).handoff_limit(count, time).build().expect("good settings");
    let other = patient(servers.urls()).build().expect("good settings");
    let (is_inside, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (turns, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let turn = |client: &LockClient, turns: &AtomicUsize, hold: Duration| {
        let guard = client.lock("shared", LONG).expect("it is got in the end");
        assert!(!is_inside.swap(true, Ordering::SeqCst), "two at once");
        thread::sleep(hold);
        assert!(is_inside.swap(false, Ordering::SeqCst));
        turns.fetch_add(1, Ordering::SeqCst);
        drop(guard);
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    turn(&client, &turns, hold);
                }
            });
        }
        assert!(eventually(LIMIT, || turns.load(Ordering::SeqCst) > 0));
        scope.spawn(|| {
            for _ in 0..5 {
                turn(&other, &others, Duration::ZERO);
            }
        });
        let had_turns = eventually(2 * LIMIT, || others.load(Ordering::SeqCst) == 5);
        is_over.store(true, Ordering::SeqCst);
        assert!(had_turns, "{others:?} turns beside {turns:?}: {count} {time:?}");
    });
    assert!(gone(&servers, "shared"));
}

#[test]
fn others_get_their_turn_after_a_number_of_handoffs() {
    others_get_their_turn(5, LONG, Duration::from_millis(1));
}

#[test]
fn others_get_their_turn_after_a_time_even_if_one_hold_is_longer() {
    others_get_their_turn(u32::MAX, Duration::from_millis(20), Duration::from_millis(1));
    others_get_their_turn(u32::MAX, Duration::from_millis(20), Duration::from_millis(50));
}

#[test]
fn others_get_their_turn_when_nothing_is_handed_off() {
    others_get_their_turn(0, LONG, Duration::from_millis(10));
}

#[test]
fn with_a_limit_of_zero_every_lock_is_released_before_it_is_taken() {
    let servers = Servers::start(3);
    let client = patient(servers.urls()).wait_for_all(true).handoff_limit(0, LONG);
    let client = client.build().unwrap();
    let guard = take(&client, "zero", LONG);
    let next = stand_for(&client, "zero");
    let before: Vec<_> = servers.iter().map(work).collect();
    assert_eq!(guard.release(), Ok(Released::InTime));
    let guard = finish(next);
    for (server, before) in servers.iter().zip(before) {
        assert_eq!(difference(before, work(server)), (1, 1, 1), "release, its DEL, a SET");
    }
    drop(guard);
}

#[test]
fn an_expired_lock_is_not_handed_on_and_its_release_harms_nobody() {
    let servers = Servers::start(3);
    let client = thorough(servers.urls());
    let guard = take(&client, "expired", Duration::from_millis(300));
    let next = finish(stand_for(&client, "expired"));
    assert!(guard.remaining().is_zero(), "the next one got it when it had expired");
    // On one of the nodes the old key may have lived longer; what most of them hold is the new one.
    let keys = || servers.iter().map(|server| value(server, "expired")).collect::<Vec<_>>();
    let before = keys();
    let is_new = |key: &Option<Vec<u8>>| {
        key.is_some() && before.iter().filter(|other| *other == key).count() >= 2
    };
    assert!(before.iter().any(is_new), "{before:?}");
    assert_eq!(guard.release(), Ok(Released::TooLate));
    let is_kept = |(old, new): (&Option<Vec<u8>>, &_)| !is_new(old) || old == new;
    assert!(before.iter().zip(&keys()).all(is_kept), "{before:?} {:?}", keys());
    assert_eq!(next.release(), Ok(Released::InTime));
}

#[test]
fn an_extension_keeps_those_in_line_waiting_beyond_the_old_ttl() {
    let servers = Servers::start(3);
    let client = thorough(servers.urls());
    let mut guard = take(&client, "extended", Duration::from_secs(2));
    let next = stand_for(&client, "extended");
    let settings = calls(&servers[0], "set");
    guard.extend(LONG).unwrap();
    let extended = calls(&servers[0], "set") - settings;
    thread::sleep(Duration::from_millis(2_300));
    assert!(!next.is_finished());
    assert_eq!(calls(&servers[0], "set") - settings, extended, "nobody has asked for it");
    assert_eq!(guard.release(), Ok(Released::InTime));
    drop(finish(next));
    assert!(gone(&servers, "extended"));
}

#[test]
fn a_lock_that_an_extension_found_lost_keeps_nobody_waiting() {
    let servers = Servers::start(3);
    let client = thorough(servers.urls());
    let mut guard = take(&client, "lost", LONG);
    let next = stand_for(&client, "lost");
    servers[..2].iter().for_each(|server| drop(server.command(&["DEL", "lost"])));
    assert!(guard.extend(LONG).is_err());
    // The lock is there for the taking, whenever the one who lost it comes to give it back.
    let next = finish(next);
    assert_eq!(guard.release(), Ok(Released::TooLate));
    assert!(next.ensure_held().is_ok());
    assert_eq!(next.release(), Ok(Released::InTime));
}

#[test]
fn who_does_not_wait_is_answered_at_once_however_many_stand_in_line() {
    let servers = Servers::start(3);
    let client = thorough(servers.urls());
    let guard = take(&client, "passing", LONG);
    let threads: Vec<_> = (0..3).map(|_| stand_for(&client, "passing")).collect();
    for _ in 0..20 {
        let client = client.clone();
        let attempt = thread::spawn(move || client.try_lock("passing", LONG).unwrap().is_some());
        assert!(!finish(attempt));
    }
    drop(guard);
    for thread in threads {
        drop(finish(thread));
    }
    assert!(client.try_lock("passing", LONG).unwrap().is_some());
}
