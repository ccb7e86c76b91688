//! Locks that are extended automatically under load: beside locks that expire, and with more locks
//! than can be extended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redlatch::{Builder, Error, LockClient, LockGuard};
use support::eventually;
use support::locks::{LIMIT, calls, without_restart_guard};
use support::proxy::{Mode, Proxy};
use support::servers::Servers;

/// Proxies that delay each direction by half of `round_trip`, and a client's settings for them.
fn away(servers: &Servers, round_trip: Duration) -> (Vec<Proxy>, Builder) {
    let half = round_trip / 2;
    let delayed = |server: &support::redis::Server| {
        let proxy = Proxy::start(server.port());
        proxy.set(Mode::Delay {
            to_server: half,
            to_client: half,
        });
        proxy
    };
    let proxies: Vec<Proxy> = servers.iter().map(delayed).collect();
    let builder = without_restart_guard(proxies.iter().map(Proxy::url));
    (proxies, builder)
}

#[track_caller]
fn keep(client: &LockClient, resource: &str, ttl: Duration) -> LockGuard {
    let request = client.request(resource).ttl(ttl).keep_alive();
    request
        .try_lock_for(LIMIT)
        .expect("a majority answers")
        .expect("no other client holds the lock")
}

#[test]
fn locks_that_expire_delay_no_automatic_extension() {
    const THREADS: u64 = 40;
    let servers = Servers::start(3);
    let (_proxies, builder) = away(&servers, Duration::from_millis(15));
    // On a busy machine only a round may take longer, not the series of expiries.
    let client = builder
        .node_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    let kept = keep(&client, "kept", Duration::from_secs(3));
    let start = Instant::now();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let client = &client;
            let is_over = &is_over;
            scope.spawn(move || {
                let ttl = Duration::from_millis(60 + 2 * thread);
                while !is_over.load(Ordering::Relaxed) {
                    let resource = format!("lapses:{thread}");
                    if let Ok(Some(guard)) = client.try_lock(resource, ttl) {
                        guard.on_lost(|_| {}).expect("there is a thread");
                        _ = guard.wait_lost(ttl);
                    }
                }
            });
        }
        while start.elapsed() < Duration::from_secs(7) && kept.ensure_held().is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(kept.ensure_held(), Ok(()), "after {:?}", start.elapsed());
}

#[test]
fn a_lock_beyond_the_capacity_is_refused_before_it_is_requested_and_the_others_are_kept() {
    let servers = Servers::start(3);
    let (_proxies, builder) = away(&servers, Duration::from_millis(200));
    let client = builder
        .node_timeout(Duration::from_millis(800))
        .build()
        .unwrap();
    // Names so long that only a few commands may be in flight.
    let long = "long".repeat(15_000);
    let take = |index: usize| {
        let request = client
            .request(format!("{long}{index}"))
            .ttl(Duration::from_millis(2_600));
        request.keep_alive().try_lock_for(LIMIT)
    };
    let mut guards = Vec::new();
    let refused = loop {
        match take(guards.len()) {
            Ok(guard) => guards.push(guard.expect("it is free")),
            Err(error) => break error,
        }
        assert!(guards.len() < 100, "there is a limit");
    };
    // A majority was enough for each: the last ones may be on their way to this server.
    let are_sent = || calls(&servers[0], "set") >= guards.len() as u64;
    assert!(eventually(LIMIT, are_sent));
    let sets = calls(&servers[0], "set");
    let Error::TooManyKeptAlive {
        kept,
        most,
        ttl,
        round,
    } = refused
    else {
        panic!("{refused}")
    };
    assert_eq!((kept, ttl), (guards.len(), Duration::from_millis(2_600)));
    assert!(
        most <= kept && most > 0 && round >= Duration::from_millis(200),
        "{refused}"
    );
    assert!(take(100).is_err());
    thread::sleep(Duration::from_millis(3_000));
    assert_eq!(calls(&servers[0], "set"), sets, "nothing was sent");
    guards
        .iter()
        .for_each(|guard| assert_eq!(guard.ensure_held(), Ok(())));
    // Rounds take twice as long on a busy machine, and there is room for half as many.
    guards.truncate(guards.len() / 4);
    guards.push(take(100).expect("there is room again").expect("it is free"));
}

/// Many locks of 3 s on nodes that are 50 ms away, kept for 10 s after the last was acquired.
/// `cargo test --release --test api keep::busy:: -- --ignored --nocapture --test-threads=1`
#[test]
#[ignore = "takes half a minute, and the machine for itself"]
fn figures_of_ten_thousand_locks_at_a_distance() {
    const THREADS: usize = 100;
    let locks = std::env::var("REDLATCH_LOCKS").map_or(10_000, |it| it.parse().expect("a number"));
    let servers = Servers::start(3);
    let (_proxies, builder) = away(&servers, Duration::from_millis(50));
    let client = builder
        .node_timeout(Duration::from_millis(250))
        .build()
        .unwrap();
    let start = Instant::now();
    let ttl = Duration::from_secs(3);
    let take = &|thread: usize| {
        let names = (0..locks / THREADS).map(|index| format!("many:{thread}:{index}"));
        names
            .map(|name| client.request(name).ttl(ttl).keep_alive().lock())
            .collect::<Vec<_>>()
    };
    let taken: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || take(thread)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let (guards, refused): (Vec<_>, Vec<_>) = taken.into_iter().partition(Result::is_ok);
    let guards: Vec<LockGuard> = guards.into_iter().map(Result::unwrap).collect();
    println!(
        "{} taken in {:.1?}, {} refused",
        guards.len(),
        start.elapsed(),
        refused.len()
    );
    refused
        .first()
        .inspect(|refused| println!("{}", refused.as_ref().unwrap_err()));
    thread::sleep(Duration::from_secs(10));
    let held = guards
        .iter()
        .filter(|guard| guard.ensure_held().is_ok())
        .count();
    let mut left: Vec<_> = guards.iter().map(LockGuard::remaining).collect();
    left.sort_unstable();
    println!(
        "{held} of {} held after 10 s; least left {:.1?}",
        guards.len(),
        left[0]
    );
    assert_eq!(held, guards.len());
}
