//! Many threads and long keys on healthy servers: no request is refused because of them, and no key
//! stays behind.

use std::env;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use redlatch::LockClient;
use support::eventually;
use support::locks::{LIMIT, LONG, connected, take, with_long_timeout, without_restart_guard};
use support::proxy::{Mode, Proxy};
use support::servers::Servers;

/// So long that no round times out although a few cores run thousands of threads and five servers.
const LONG_ROUND: Duration = Duration::from_secs(30);

/// A name of 60,000 bytes.
fn long(number: usize) -> String {
    format!("{number:060000}")
}

/// The number of keys on all servers together.
fn keys(servers: &Servers) -> i64 {
    servers
        .iter()
        .map(|server| server.command(&["DBSIZE"]).integer())
        .sum()
}

/// The number in the environment variable, which is set for measurements, or the default.
fn sized(variable: &str, usual: usize) -> usize {
    env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// Runs `work` in this many threads at the same moment, and returns the results.
fn at_once<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let begin = |number| {
            let barrier = &barrier;
            let work = &work;
            let run = move || {
                barrier.wait();
                work(number)
            };
            let thread = thread::Builder::new().stack_size(64 * 1024);
            thread.spawn_scoped(scope, run).expect("a thread")
        };
        let threads: Vec<_> = (0..threads).map(begin).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

#[test]
fn thousands_of_threads_each_get_a_lock() {
    let servers = Servers::start(5);
    let client = with_long_timeout(servers.urls())
        .node_timeout(LONG_ROUND)
        .build()
        .unwrap();
    let start = Instant::now();
    let taken = at_once(sized("REDLATCH_THREADS", 2_000), |number| {
        client.try_lock(format!("thread-{number}"), LONG)
    });
    println!("took {:?}", start.elapsed());
    let failed: Vec<_> = taken
        .iter()
        .filter(|taken| !matches!(taken, Ok(Some(_))))
        .collect();
    assert!(
        failed.is_empty(),
        "{} fail, the first with {:?}",
        failed.len(),
        failed[0]
    );
    drop((taken, client));
    assert_eq!(
        keys(&servers),
        0,
        "dropping the client waits for the servers"
    );
}

#[test]
fn a_dozen_threads_with_long_names_each_get_a_lock() {
    let servers = Servers::start(5);
    let client = with_long_timeout(servers.urls())
        .node_timeout(LONG_ROUND)
        .build()
        .unwrap();
    let failed = at_once(12, |thread| {
        let try_one = |number: &usize| {
            let taken = client.try_lock(long(100 * thread + number), LONG);
            !taken.is_ok_and(|guard| guard.is_some())
        };
        (0..sized("REDLATCH_PAIRS", 40)).filter(try_one).count()
    });
    assert_eq!(failed.iter().sum::<usize>(), 0, "{failed:?}");
    drop(client);
    assert_eq!(keys(&servers), 0);
}

#[test]
fn hundreds_of_guards_with_long_names_can_be_dropped_at_once() {
    let servers = Servers::start(5);
    let client = with_long_timeout(servers.urls()).build().unwrap();
    let guards: Vec<_> = (0..200)
        .map(|number| take(&client, long(number), LONG))
        .collect();
    drop(guards);
    // Removals without room on the connections follow with the next requests.
    assert!(eventually(LIMIT, || !client.nodes().is_empty() && keys(&servers) == 0));
}

#[test]
fn the_last_drop_waits_also_for_servers_whose_replies_were_not_read() {
    let servers = Servers::start(5);
    let proxies: Vec<_> = servers
        .iter()
        .map(|server| Proxy::start(server.port()))
        .collect();
    let delay = Duration::from_millis(20);
    proxies.iter().for_each(|proxy| {
        proxy.set(Mode::Delay {
            to_server: delay,
            to_client: delay,
        });
    });
    let round = Duration::from_millis(300);
    let client = without_restart_guard(proxies.iter().map(Proxy::url))
        .node_timeout(round)
        .build()
        .unwrap();
    let client = connected(client);
    let mut guards: Vec<_> = (0..20)
        .map(|i| take(&client, format!("last-{i}"), LONG))
        .collect();
    // The replies to the first removals came long before the last removals, and were not read.
    drop(guards.split_off(10));
    thread::sleep(2 * round);
    drop(guards);
    drop::<LockClient>(client);
    assert_eq!(keys(&servers), 0);
}

#[test]
fn the_last_drop_waits_as_long_as_servers_reply() {
    let servers = Servers::start(5);
    let client = connected(
        without_restart_guard(servers.urls())
            .node_timeout(LONG_ROUND / 30)
            .build()
            .unwrap(),
    );
    let count = sized("REDLATCH_GUARDS", 3_000);
    let guards: Vec<_> = (0..count)
        .map(|i| take(&client, format!("many-{i}"), LONG))
        .collect();
    drop(guards);
    let start = Instant::now();
    drop(client);
    println!("dropping took {:?}", start.elapsed());
    assert_eq!(keys(&servers), 0);
}
