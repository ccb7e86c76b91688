//! Waiters that live and never take their turn, and locks that become free without a word: the next
//! one is served anyway.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redlatch::{Builder, CancelToken, LockClient};
use support::cli::Value;
use support::eventually;
use support::locks::{LIMIT, LONG, take, without_restart_guard};
use support::proxy::{Mode, proxied};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{BY_PUSH, LONG_LEASE, are_queued, await_queued, holder, pushed, queued};

/// A waiter in the nodes' queue that does not get the lock.
struct InVain {
    thread: JoinHandle<()>,
    token: CancelToken,
}

impl InVain {
    /// Waits with a time to claim of 150 ms, until the test is over.
    fn start(settings: Builder, ttl: Duration, min_validity: Duration) -> Self {
        let client = settings
            .waiter_lease(LONG_LEASE)
            .build()
            .expect("the settings are good");
        let token = client.cancel_token();
        let wait = move || {
            let request = client.request("name").ttl(ttl).min_validity(min_validity);
            assert!(request.lock().is_err(), "it is served");
        };
        Self {
            thread: spawn_waiter(wait),
            token,
        }
    }

    fn end(self) {
        self.token.cancel();
        finish(self.thread);
    }
}

/// Waits behind the first waiter, and counts how long the lock lies free before it has it.
fn expect_next(servers: &Servers, client: LockClient, first: InVain, release: impl FnOnce()) {
    let waiting = spawn_waiter(move || {
        let lock = client.lock("name", LONG).expect("it is served");
        (Instant::now(), lock.release())
    });
    let is_queued = |server| queued(server, "name") == 2;
    assert!(eventually(LIMIT, || servers.iter().any(is_queued)));
    release();
    let start = Instant::now();
    let (served, released) = finish(waiting);
    assert_eq!(released, Ok(()));
    let free = served.saturating_duration_since(start);
    assert!(free < BY_PUSH, "the lock lay free for {free:?}");
    first.end();
}

#[test]
fn a_waiter_whose_links_become_slow_keeps_nobody_out() {
    let servers = Servers::start(3);
    let (proxies, slow) = proxied(&servers);
    let held = take(&holder(servers.urls()), "name", LONG);
    let first = InVain::start(without_restart_guard(slow), LONG, Duration::ZERO);
    await_queued(&servers, "name", 1);
    expect_next(&servers, pushed(servers.urls()), first, || {
        // The reservation is over when the claim arrives, also one that was made for a question.
        let each_way = Duration::from_millis(200);
        let mode = Mode::Delay {
            to_server: each_way,
            to_client: each_way,
        };
        proxies.iter().for_each(|proxy| proxy.set(mode));
        drop(held);
    });
}

#[test]
fn a_waiter_that_reaches_a_minority_keeps_nobody_out() {
    let servers = Servers::start(3);
    let (proxies, urls) = proxied(&servers);
    let held = take(&holder(servers.urls()), "name", LONG);
    let first = InVain::start(without_restart_guard(&urls), LONG, Duration::ZERO);
    await_queued(&servers, "name", 1);
    let (others, all) = proxied(&servers);
    expect_next(&servers, pushed(all), first, || {
        // One node is down for both, and the first waiter does not reach another.
        let cut = [&others[2], &proxies[2], &proxies[1]];
        cut.iter().for_each(|proxy| proxy.set(Mode::Refuse));
        drop(held);
    });
}

/// A claim takes a round, also where rounds may take long.
#[test]
fn a_waiter_that_reaches_a_minority_delays_the_next_by_little_more_than_a_round() {
    const ROUND: Duration = Duration::from_millis(1_000);
    let servers = Servers::start(3);
    let [(proxies, urls), (others, all)] = [proxied(&servers), proxied(&servers)];
    let held = take(&holder(servers.urls()), "name", LONG);
    let settings = |urls: &[String]| without_restart_guard(urls).node_timeout(ROUND);
    let first = InVain::start(settings(&urls), LONG, Duration::ZERO);
    await_queued(&servers, "name", 1);
    let client = settings(&all)
        .waiter_lease(LONG_LEASE)
        .build()
        .expect("good settings");
    let waiting = spawn_waiter(move || {
        drop(client.lock("name", LONG).expect("it is served"));
        Instant::now()
    });
    await_queued(&servers, "name", 2);
    let cut = [&others[2], &proxies[2], &proxies[1]];
    cut.iter().for_each(|proxy| proxy.set(Mode::Refuse));
    drop(held);
    let start = Instant::now();
    let free = finish(waiting).saturating_duration_since(start);
    assert!(free < 2 * ROUND, "the lock lay free for {free:?}");
    first.end();
}

/// Nodes reserve the lock for different waiters then, whose times are over at the same moment.
#[test]
fn a_waiter_that_reaches_a_minority_delays_many_behind_it_by_one_reservation() {
    const ROUND: Duration = Duration::from_millis(200);
    for round in 0..5 {
        let servers = Servers::start(3);
        let [(proxies, urls), (others, all)] = [proxied(&servers), proxied(&servers)];
        let held = take(&holder(servers.urls()), "name", LONG);
        let settings = |urls: &[String]| without_restart_guard(urls).node_timeout(ROUND);
        let first = InVain::start(settings(&urls), LONG, Duration::ZERO);
        await_queued(&servers, "name", 1);
        let behind = |place: usize| {
            let client = settings(&all)
                .waiter_lease(LONG_LEASE)
                .build()
                .expect("good settings");
            let waiting = spawn_waiter(move || {
                let lock = client.lock("name", LONG).expect("it is served");
                let served = Instant::now();
                drop(lock);
                served
            });
            await_queued(&servers, "name", place + 1);
            waiting
        };
        let waiting: Vec<_> = (1..7).map(behind).collect();
        let cut = [&others[2], &proxies[2], &proxies[1]];
        cut.iter().for_each(|proxy| proxy.set(Mode::Refuse));
        drop(held);
        let start = Instant::now();
        let served = waiting
            .into_iter()
            .map(finish)
            .min()
            .expect("there are six");
        let free = served.saturating_duration_since(start);
        // A reservation lasts for less than three rounds.
        assert!(
            free < 4 * 3 * ROUND,
            "round {round}: the lock lay free for {free:?}"
        );
        first.end();
    }
}

#[test]
fn a_waiter_with_too_little_validity_left_keeps_nobody_out() {
    let servers = Servers::start(3);
    let held = take(&holder(servers.urls()), "name", LONG);
    // One per cent and 2 ms go to the drift of clocks, which leaves 10 microseconds for a turn.
    let ttl = Duration::from_secs(1);
    let least = Duration::from_micros(987_990);
    let first = InVain::start(without_restart_guard(servers.urls()), ttl, least);
    await_queued(&servers, "name", 1);
    expect_next(&servers, pushed(servers.urls()), first, || drop(held));
}

/// Takes the lock as a program that knows no queue, on all servers.
fn set(servers: &Servers, name: &str) -> bool {
    let long = LONG.as_millis().to_string();
    let set = ["SET", name, "another program", "NX", "PX", &long];
    let answers = servers.iter().map(|server| server.command(&set));
    answers
        .filter(|answer| *answer == Value::Simple("OK".to_owned()))
        .count()
        > servers.len() / 2
}

fn delete(servers: &Servers, name: &str) {
    servers
        .iter()
        .for_each(|server| drop(server.command(&["DEL", name])));
}

#[test]
fn a_release_by_a_program_that_knows_no_queue_is_noticed_at_once() {
    support::needs!(Tracking);
    let servers = Servers::start(3);
    let client = pushed(servers.urls());
    let noticed = |round: usize| {
        let name = format!("foreign {round}");
        assert!(set(&servers, &name));
        let client = client.clone();
        let other = name.clone();
        let waiting = spawn_waiter(move || {
            let lock = client.lock(&other, LONG).expect("it is served");
            (Instant::now(), lock.release())
        });
        await_queued(&servers, &name, 1);
        // It would look by itself a second after it has joined.
        thread::sleep(Duration::from_millis(100));
        let start = Instant::now();
        delete(&servers, &name);
        let (served, released) = finish(waiting);
        assert_eq!(released, Ok(()));
        served.saturating_duration_since(start)
    };
    let is_prompt = |round| noticed(round) < Duration::from_millis(400);
    assert!(
        (0..5).any(is_prompt),
        "it looks only when it renews its entry"
    );
}

#[test]
fn the_next_one_hears_when_a_lock_that_stays_taken_ends_although_the_first_gave_up() {
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let first = pushed(servers.urls());
    let stays = Duration::from_millis(600);
    let late = |round: usize| {
        let name = format!("stays {round}");
        let begun = Instant::now();
        let held = client
            .request(&name)
            .ttl(LONG)
            .hold_at_least(stays)
            .lock()
            .expect("free");
        let first = first.clone();
        let key = name.clone();
        let gives_up = Duration::from_millis(200);
        let first = spawn_waiter(move || first.request(key).ttl(LONG).try_lock_for(gives_up));
        let is_there = || are_queued(&servers, &name, 1);
        assert!(eventually(LIMIT, || is_there() || first.is_finished()));
        let next = pushed(servers.urls());
        let key = name.clone();
        let next = spawn_waiter(move || {
            let lock = next.lock(key, LONG).expect("it is served");
            (Instant::now(), lock)
        });
        let are_both_there = || are_queued(&servers, &name, 2);
        assert!(eventually(LIMIT, || are_both_there() || first.is_finished()));
        let is_in_time = are_both_there(); // before the first has given up
        assert_eq!(held.release(), Ok(()));
        assert!(finish(first).is_ok_and(|lock| lock.is_none()));
        let (served, lock) = finish(next);
        drop(lock);
        if is_in_time {
            served.saturating_duration_since(begun + stays)
        } else {
            Duration::MAX
        }
    };
    // It would look by itself a second after it has joined, or later.
    assert!(
        (0..5).any(|round| late(round) < Duration::from_millis(150)),
        "nobody tells it"
    );
}

/// Ends the threads of a test, also if it fails.
struct EndOfTest<'a>(&'a AtomicBool);

impl Drop for EndOfTest<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn no_poller_overtakes_the_first_waiter_after_a_lock_that_stayed_taken() {
    let servers = Servers::start(3);
    let clients = [holder(servers.urls()), holder(servers.urls())];
    let is_over = AtomicBool::new(false);
    let overtaken = AtomicUsize::new(0);
    let wait = |index: usize, ttl: Duration| {
        let client = clients[index % 2].clone();
        let least = Duration::from_millis(300);
        move || {
            client
                .request("job")
                .ttl(ttl)
                .hold_at_least(least)
                .lock()
                .expect("it is served")
        }
    };
    // Those that are left stay taken for the rest of their ttl.
    let ttl = |round: usize| {
        if round % 3 == 0 {
            Duration::from_secs(2)
        } else {
            LONG
        }
    };
    thread::scope(|scope| {
        let _end = EndOfTest(&is_over);
        let poll = || {
            while !is_over.load(Ordering::SeqCst) {
                if set(&servers, "job") {
                    overtaken.fetch_add(1, Ordering::SeqCst);
                    delete(&servers, "job");
                }
                thread::sleep(Duration::from_millis(1));
            }
        };
        let mut held = wait(0, ttl(0))();
        scope.spawn(poll);
        for round in 0..9 {
            let waiting = spawn_waiter(wait(round + 1, ttl(round + 1)));
            // One that was served stays in the queue until it releases the lock.
            await_queued(&servers, "job", 1 + round.min(1));
            if round % 3 == 0 {
                held.let_expire();
            } else {
                assert_eq!(held.release(), Ok(()));
            }
            held = finish(waiting);
        }
        drop(held);
    });
    assert_eq!(overtaken.load(Ordering::SeqCst), 0, "of 9 locks");
}
