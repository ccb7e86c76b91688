//! Jobs that run once in each period, on many machines whose clocks differ, and with faults of all
//! that take part.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

use std::thread;
use std::time::Duration;

use redlatch::error::ClocksError;
use redlatch::{Error, LockClient, OncePerError, OncePerRun, RegisterError};
use support::eventually;
use support::locks::{LIMIT, LONG, take, without_restart_guard};
use support::program::succeed;
use support::redis::Server;
use support::servers::Servers;
use support::shim::{Shim, set_clock};

use super::clocks::{CLOCK, Clocks};
use super::once_per_killed::machine;

pub(crate) const DAY: Duration = Duration::from_secs(DAY_SECONDS as u64);
pub(crate) const DAY_SECONDS: i64 = 86_400;
const YEAR_SECONDS: i64 = 365 * DAY_SECONDS;

pub(crate) type Ran = Result<OncePerRun<u32>, Error>;

/// As long as a ttl of ten seconds allows: a busy machine may take most of it to answer, and a
/// clock that has not answered by then leaves doubt.
pub(crate) fn client(urls: Vec<String>) -> LockClient {
    without_restart_guard(urls)
        .node_timeout(Duration::from_secs(3))
        .build()
        .unwrap()
}

/// Servers whose clocks can be moved, which keep registers.
fn formed() -> (Clocks, LockClient) {
    let clocks = Clocks::start();
    let client = client(clocks.urls());
    client.registers().form(true).unwrap();
    (clocks, client)
}

/// Calls the daily job, which returns 1.
pub(crate) fn call(client: &LockClient) -> Ran {
    client.once_per("report", DAY).exact().run(|_lock| Ok(1))
}

pub(crate) fn ran(run: &Ran) -> bool {
    matches!(run, Ok(OncePerRun::Ran(1)))
}

/// Is it due in about so long?
pub(crate) fn is_due_in(run: &Ran, seconds: i64) -> bool {
    let expected = Duration::from_secs(seconds.unsigned_abs());
    matches!(run, Ok(OncePerRun::NotDue { left, .. })
        if *left <= expected && *left + LIMIT + LIMIT > expected)
}

/// A call adds the name of its job to a list on the first server.
fn call_and_sign(client: &LockClient, first: &Server) -> bool {
    let run = client.once_per("report", DAY).exact().run(|_lock| {
        first.command(&["RPUSH", "runs", "x"]);
        Ok::<_, Error>(())
    });
    run.expect("all nodes are up").ran().is_some()
}

#[test]
fn the_time_for_which_the_lock_was_waited_for_does_not_shorten_the_period() {
    let (clocks, first) = formed();
    let _held = take(&client(clocks.urls()), "report", LONG);
    let run = thread::scope(|scope| {
        let late = scope.spawn(|| call(&first));
        assert!(eventually(LIMIT, || !first
            .inspect("report")
            .unwrap()
            .waiters
            .is_empty()));
        (0..3).for_each(|index| clocks.set(index, 60 * 60)); // The lock has ended by that.
        late.join().unwrap()
    });
    assert!(ran(&run) && is_due_in(&call(&first), DAY_SECONDS * 9 / 10));
}

#[test]
fn many_clients_and_processes_run_a_job_once_in_each_period() {
    let (clocks, _client) = formed();
    for day in 0..3 {
        (0..3).for_each(|index| clocks.set(index, day * DAY_SECONDS));
        thread::scope(|scope| {
            for hours in [0, 24 * 365, -24 * 365] {
                let urls = clocks.urls().join(" ");
                scope.spawn(move || {
                    let shim = Shim::clock();
                    set_clock(&shim.orders(), hours * 3_600 * 1_000_000_000);
                    succeed(machine(&urls, "exact, sign").envs(shim.environment(CLOCK)));
                });
            }
            for _ in 0..4 {
                scope.spawn(|| call_and_sign(&client(clocks.urls()), &clocks.servers[0]));
            }
        });
        let runs = clocks.servers[0].command(&["LLEN", "runs"]).integer();
        assert_eq!(runs, day + 1, "one of seven clients runs it each day");
    }
}

#[test]
fn a_period_after_the_last_run_began_it_is_due_again_and_a_tenth_earlier() {
    let (clocks, client) = formed();
    let set_all = |seconds| (0..3).for_each(|index| clocks.set(index, seconds));
    assert!(ran(&call(&client)));
    let again = call(&client);
    assert!(is_due_in(&again, DAY_SECONDS * 9 / 10), "{again:?}");
    let exact = client
        .once_per("report", DAY)
        .exact()
        .tolerance(Duration::ZERO);
    let run: Ran = exact.run(|_lock| Ok(2));
    assert!(is_due_in(&run, DAY_SECONDS), "{run:?}");
    set_all(DAY_SECONDS * 95 / 100);
    assert!(
        ran(&call(&client)),
        "a crontab that calls a little earlier runs it"
    );
    // What began early does not move the next run.
    let again = call(&client);
    assert!(is_due_in(&again, DAY_SECONDS * 95 / 100), "{again:?}");
    set_all(2 * DAY_SECONDS);
    assert!(ran(&call(&client)));
}

#[test]
fn a_wrong_clock_of_one_node_moves_nothing_and_leaves_doubt_only_while_another_is_down() {
    let (mut clocks, client) = formed();
    clocks.set(0, YEAR_SECONDS);
    assert!(ran(&call(&client)));
    for seconds in [YEAR_SECONDS, -YEAR_SECONDS, 0] {
        clocks.set(0, seconds);
        let run = call(&client);
        assert!(is_due_in(&run, DAY_SECONDS * 9 / 10), "{run:?}");
    }
    clocks.servers[2].kill();
    assert!(
        is_due_in(&call(&client), DAY_SECONDS * 9 / 10),
        "two clocks that agree are enough"
    );
    clocks.set(0, YEAR_SECONDS);
    let run = call(&client);
    let Err(Error::OncePer(OncePerError::Clocks(ClocksError::Differ { by }))) = run else {
        panic!("{run:?}")
    };
    assert!(by > 364 * DAY, "{by:?}");
}

#[test]
fn a_run_that_failed_counts_unless_failed_runs_are_retried() {
    let (_clocks, client) = formed();
    let fails = |_: &redlatch::LockGuard| Err::<u32, _>("the printer is on fire".into());
    let failed: Result<_, Box<dyn std::error::Error>> =
        client.once_per("report", DAY).exact().run(fails);
    assert_eq!(failed.unwrap_err().to_string(), "the printer is on fire");
    assert!(is_due_in(&call(&client), DAY_SECONDS * 9 / 10));

    let retried = || client.once_per("retried", DAY).exact().retry_failed();
    let failed: Result<_, Box<dyn std::error::Error>> = retried().run(fails);
    assert_eq!(failed.unwrap_err().to_string(), "the printer is on fire");
    assert!(ran(&retried().run(|_lock| Ok(1))));
    let run: Ran = retried().run(|_lock| Ok(1));
    assert!(is_due_in(&run, DAY_SECONDS * 9 / 10), "{run:?}");
}

#[test]
fn a_minority_that_restarts_empty_forgets_no_run() {
    let mut servers = Servers::start(3);
    let first = client(servers.urls());
    first.registers().form(true).unwrap();
    assert!(ran(&call(&first)));
    servers[1].restart();
    for client in [first, client(servers.urls())] {
        assert!(is_due_in(&call(&client), DAY_SECONDS * 9 / 10));
    }
}

#[test]
fn a_run_that_takes_longer_than_the_period_is_not_joined_by_the_next() {
    let (clocks, client) = formed();
    let other = self::client(clocks.urls());
    let exact = |client: &LockClient, job: &mut dyn FnMut()| -> Ran {
        client.once_per("report", DAY).exact().run(|_lock| {
            job();
            Ok(1)
        })
    };
    let run = exact(&client, &mut || {
        // A day passes for the registers, and not for the lock, whose key would expire.
        let register = other.register("once_per:report").unwrap();
        register
            .change(|_| Some(b"once_per 1 7 counts".to_vec()))
            .unwrap();
        assert_eq!(call(&other), Ok(OncePerRun::HeldByOther));
    });
    assert!(ran(&run), "{run:?}");
    assert!(ran(&call(&other)));
}

#[test]
fn a_lock_that_is_lost_during_the_job_is_an_error_and_the_run_counts() {
    let (_clocks, client) = formed();
    let run: Ran = client.once_per("report", DAY).exact().run(|_lock| {
        let seen = client.inspect("report").unwrap();
        assert!(client.force_release(&seen).unwrap());
        drop(take(&client_of(&client), "report", LONG));
        Ok(1)
    });
    assert!(matches!(run, Err(Error::Lost(_))), "{run:?}");
    assert!(is_due_in(&call(&client), DAY_SECONDS * 9 / 10));
}

/// Another client of the same nodes.
fn client_of(client: &LockClient) -> LockClient {
    self::client(
        client
            .nodes()
            .iter()
            .map(|node| node.url.to_string())
            .collect(),
    )
}

#[test]
fn what_is_missing_is_named_and_the_job_does_not_run() {
    let servers = Servers::start(3);
    let client = client(servers.urls());
    let none = |run: Result<OncePerRun<()>, Error>| run.unwrap_err().to_string();
    let never = |_: &redlatch::LockGuard| -> Result<(), Error> { panic!("it must not run") };
    let run = || client.once_per("report", DAY).exact().run(never);
    assert!(matches!(
        run(),
        Err(Error::Register(RegisterError::NotFormed))
    ));
    assert!(none(run()).contains("redlatch registers form"));
    assert_eq!(
        none(client.once_per("report", Duration::ZERO).run(never)),
        "a period of 0ns is not longer than its tolerance: 0ns"
    );
    client.registers().form(true).unwrap();
    let named = client.once_per("", DAY).exact().run(never);
    assert!(matches!(named, Err(Error::Resource(_))));
    let short = client
        .request("report")
        .ttl(Duration::from_millis(1))
        .once_per(DAY)
        .exact()
        .run(never);
    assert!(matches!(short, Err(Error::Ttl(_))), "{short:?}");
    for value in ["another program's", "once_per 2 a later version's"] {
        let register = client.register("once_per:report").unwrap();
        register
            .change(|_| Some(value.as_bytes().to_vec()))
            .unwrap();
        assert!(matches!(
            run(),
            Err(Error::Register(RegisterError::OtherFormat { .. }))
        ));
    }
    for server in &servers[..2] {
        server.command(&["ACL", "SETUSER", "default", "-time"]);
    }
    assert_eq!(
        none(client.once_per("other", DAY).exact().run(never)),
        "1 of the nodes told the time, and 2 are needed: the user needs the rights +info and +time"
    );
}

#[test]
fn on_zookeeper_the_error_says_that_there_are_no_registers() {
    let ensemble = redlatch::embedded::Ensemble::start().unwrap();
    let client = LockClient::new([ensemble.url()]).unwrap();
    let run = call(&client);
    assert_eq!(run, Err(Error::Register(RegisterError::ZooKeeper)));
    assert_eq!(
        run.unwrap_err().to_string(),
        "there are no registers on ZooKeeper"
    );
}
