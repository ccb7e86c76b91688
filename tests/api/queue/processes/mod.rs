//! Processes that wait in the nodes' queue and are killed, stopped and continued, and very many
//! waiters.
//!
//! Each of these tests needs most of the machine, so they run one after another.

mod contender;
mod journal;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use contender::{Contender, LEASE, TTL};
use redlatch::{LockClient, LockGuard};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, LONG, take, without_restart_guard};
use support::program::in_memory;
use support::redis::Server;
use support::servers::Servers;
use support::waiters::{Line, await_keys, await_queued, holder, queued, with_lease};

/// What a busy machine adds to every delay.
const SLACK: Duration = Duration::from_secs(3);

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn client(servers: &Servers) -> LockClient {
    with_lease(servers.urls(), LEASE)
        .build()
        .expect("the settings are good")
}

/// The same, and it holds its locks on all nodes. Its lease is also how long the entry of a
/// dead waiter stays.
fn all_nodes(servers: &Servers) -> LockClient {
    let settings = with_lease(servers.urls(), LEASE).wait_for_all(true);
    settings.build().expect("the settings are good")
}

#[test]
fn a_killed_waiter_at_the_head_of_the_queue_costs_the_others_its_lease_at_most() {
    let _alone = alone();
    let servers = Servers::start(3);
    let folder = in_memory();
    let held = take(&all_nodes(&servers), "name", LONG);
    let mut first = Contender::start(&servers.urls(), folder.path(), 0);
    await_queued(&servers, "name", 1);
    let client = client(&servers);
    let next = thread::spawn(move || client.lock("name", LONG).map(LockGuard::release));
    await_queued(&servers, "name", 2);
    first.kill();
    let start = Instant::now();
    drop(held);
    assert!(support::queue::finish(next).expect("it is served").is_ok());
    assert!(start.elapsed() < LEASE + SLACK, "{:?}", start.elapsed());
    assert_eq!(
        journal::read(folder.path()).len(),
        0,
        "the dead one had nothing"
    );
    await_keys(&servers, &[]);
}

#[test]
fn a_stopped_waiter_at_the_head_is_passed_over_and_served_when_it_goes_on() {
    let _alone = alone();
    let servers = Servers::start(3);
    let folder = in_memory();
    let held = take(&all_nodes(&servers), "name", LONG);
    let mut first = Contender::start(&servers.urls(), folder.path(), 0);
    await_queued(&servers, "name", 1);
    let mut line = Line::before("name");
    first.stop();
    let start = Instant::now();
    // It is in the queue, or its lease is over.
    line.enter(client(&servers));
    drop(held);
    assert!(line.end() - start < LEASE + SLACK, "{:?}", start.elapsed());
    assert_eq!(journal::read(folder.path()).len(), 0);
    first.signal(Signal::CONT);
    assert!(
        eventually(LIMIT, || !journal::read(folder.path()).is_empty()),
        "it is never served"
    );
    first.end();
    await_keys(&servers, &[]);
}

#[test]
fn a_killed_holder_costs_the_first_waiter_its_ttl_at_most() {
    let _alone = alone();
    let servers = Servers::start(3);
    let folder = in_memory();
    let mut first = Contender::start(&servers.urls(), folder.path(), contender::KEEPS);
    assert!(eventually(LIMIT, || !journal::read(folder.path()).is_empty()));
    let mut line = Line::before("name");
    (0..2).for_each(|_| line.join(&servers, client(&servers)));
    assert!(line.is_waiting());
    first.kill();
    let start = Instant::now();
    let served = line.end() - start;
    assert!(served < TTL + SLACK, "{served:?}");
    await_keys(&servers, &[]);
}

#[test]
fn a_holder_that_is_killed_with_many_waiters_costs_whoever_is_behind_them_its_ttl_and_a_second() {
    let _alone = alone();
    let servers = Servers::start(3);
    let folder = in_memory();
    let mut crowd = Contender::start(&servers.urls(), folder.path(), contender::CROWD);
    let are_there = |server| queued(server, "name") >= contender::CROWD_SIZE - 1;
    assert!(eventually(2 * LIMIT, || servers.iter().all(are_there)));
    let mut line = Line::before("name");
    line.enter(client(&servers));
    // It has been told how far back it stands, and asks rarely from then on.
    thread::sleep(LEASE);
    crowd.kill();
    let start = Instant::now();
    let served = line.end() - start;
    assert!(
        served < TTL + Duration::from_secs(1) + SLACK / 2,
        "{served:?}"
    );
    await_keys(&servers, &[]);
}

#[test]
fn processes_that_are_killed_and_stopped_at_any_moment_exclude_each_other_and_go_on() {
    let _alone = alone();
    const COUNT: u64 = 8;
    const TIME: Duration = Duration::from_secs(6);
    let servers = Servers::start(3);
    let folder = in_memory();
    let start_one = |number| Contender::start(&servers.urls(), folder.path(), number);
    let mut contenders: Vec<_> = (0..COUNT).map(start_one).collect();
    let mut started = COUNT;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let start = Instant::now();
    while start.elapsed() < TIME {
        thread::sleep(Duration::from_millis(60));
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // The first two are never killed or stopped.
        let index = 2 + (random >> 8) as usize % (COUNT as usize - 2);
        match random % 8 {
            0 => {
                contenders[index].kill();
                contenders[index] = start_one(started);
                started += 1;
            }
            1 | 2 => contenders[index].signal(Signal::STOP),
            _ => contenders[index].signal(Signal::CONT),
        }
    }
    contenders
        .iter()
        .for_each(|contender| contender.signal(Signal::CONT));
    contenders.iter_mut().for_each(Contender::end);

    let holds = journal::read(folder.path());
    let mut counts = BTreeMap::new();
    holds
        .iter()
        .for_each(|hold| *counts.entry(hold.process).or_insert(0) += 1);
    let gap = journal::check(&holds);
    eprintln!(
        "{} grants, the longest gap {gap:?}, {started} processes",
        holds.len()
    );
    assert!(
        [0, 1].iter().all(|process| counts.get(process) >= Some(&3)),
        "{counts:?}"
    );
    // The last ones were stopped at any moment, and ran to their end.
    assert!(counts.len() >= COUNT as usize, "{counts:?}");
    // A dead holder and two dead waiters one after another.
    assert!(gap < TTL + 2 * LEASE + SLACK, "{gap:?}");
    await_keys(&servers, &[]);
}

/// The owners of the waiters in a node's queue, in order.
fn owners(server: &Server) -> Vec<String> {
    let mut client = server.client();
    let queue = client.command(&["ZRANGE", "name:redlatch:queue", "0", "-1"]);
    let Value::Array(waiters) = queue else {
        panic!("{queue:?}")
    };
    let mut owner = |waiter: &Value| {
        let Value::Bulk(waiter) = waiter else {
            panic!("{waiter:?}")
        };
        let lease = [b"name:redlatch:lease:", waiter.as_slice()].concat();
        let text = client.command(&[b"GET".as_slice(), &lease]).text();
        text.splitn(5, ' ')
            .last()
            .expect("the owner is behind four other words")
            .to_owned()
    };
    waiters.iter().map(&mut owner).collect()
}

#[test]
fn five_hundred_clients_that_wait_at_once_are_served_in_the_order_of_the_queue() {
    let _alone = alone();
    const COUNT: usize = 500;
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, most).expect("up to the maximum is allowed");
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    let served = Mutex::new(Vec::new());
    let (order, start) = thread::scope(|scope| {
        for number in 0..COUNT {
            let servers = &servers;
            let served = &served;
            scope.spawn(move || {
                let builder = without_restart_guard(servers.urls());
                let builder = builder.node_timeout(Duration::from_secs(10));
                let client = builder
                    .waiter_lease(Duration::from_secs(50))
                    .build()
                    .unwrap();
                let request = client.request("name").ttl(LONG).owner(number.to_string());
                let guard = request.lock().unwrap();
                served.lock().unwrap().push(number.to_string());
                assert!(guard.release().is_ok());
            });
        }
        let mut order = Vec::new();
        // Those that came at once settle their numbers in a second round.
        let is_settled = eventually(2 * LIMIT, || {
            order = owners(&servers[0]);
            order.len() == COUNT && servers[1..].iter().all(|server| owners(server) == order)
        });
        assert!(is_settled, "only {} are queued", order.len());
        let start = Instant::now();
        drop(held);
        (order, start)
    });
    eprintln!("{COUNT} handoffs in {:?}", start.elapsed());
    assert_eq!(served.into_inner().unwrap(), order);
    await_keys(&servers, &[]);
}

/// The code of the child processes. Does nothing without the environment variables.
#[test]
fn as_a_contender() {
    contender::run();
}
