//! Jobs that run once in each period, in processes that are killed; and on nodes that only have
//! locks.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

use std::env;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use redlatch::error::TtlError;
use redlatch::{Error, LockClient, OncePer};
use support::eventually;
use support::locks::{LIMIT, LONG, can_be_acquired};
use support::program::{end_with_parent, test_process};
use support::redis::Server;
use support::servers::Servers;

use super::once_per::{DAY, DAY_SECONDS, Ran, client, is_due_in, ran};

const URLS: &str = "REDLATCH_TEST_ONCE_URLS";
const JOB: &str = "REDLATCH_TEST_ONCE_JOB";

/// A short period.
const SHORT: Duration = Duration::from_secs(2);

/// Another machine, on these nodes. The words in `job` are: `exact`, `retry`, `short` for a short
/// period, `sign` or `hang` for what it does.
pub(crate) fn machine(urls: &str, job: &str) -> Command {
    let mut command = test_process("faults::once_per_killed::as_a_machine");
    command.env(URLS, urls).env(JOB, job);
    command
}

/// The code of that machine. Does nothing without the environment variables.
#[test]
fn as_a_machine() {
    let (Ok(urls), Ok(job)) = (env::var(URLS), env::var(JOB)) else {
        return;
    };
    end_with_parent();
    let client = client(urls.split(' ').map(str::to_owned).collect());
    let first = urls
        .split(' ')
        .next()
        .and_then(|url| url.rsplit(':').next())
        .unwrap();
    let mut first = support::cli::Client::connect(first.parse().unwrap()).unwrap();
    let run = once(&client, &job).run(|_lock| {
        first.command(&["RPUSH", "runs", "x"]);
        if job.contains("hang") {
            thread::sleep(Duration::MAX); // until it is killed
        }
        Ok::<_, Error>(())
    });
    let _ = run.expect("all nodes are up");
}

/// The job as a machine calls it. Its ttl is longer than any test: the run's lock has its own.
fn once<'a>(client: &'a LockClient, job: &str) -> OncePer<'a> {
    let period = if job.contains("short") { SHORT } else { DAY };
    let once = client.request("report").ttl(LONG).once_per(period);
    let once = if job.contains("exact") {
        once.exact()
    } else {
        once
    };
    if job.contains("retry") {
        once.retry_failed()
    } else {
        once
    }
}

fn call(client: &LockClient, job: &str) -> Ran {
    once(client, job).run(|_lock| Ok(1))
}

/// Starts a machine whose job hangs, and kills it when the job has begun.
fn killed(servers: &Servers, job: &str) {
    let mut machine: Child = machine(&servers.urls().join(" "), job).spawn().unwrap();
    let runs = || servers[0].command(&["LLEN", "runs"]).integer();
    let before = runs();
    assert!(eventually(LIMIT, || runs() > before));
    machine.kill().unwrap();
    machine.wait().unwrap();
}

/// What remembers the runs.
fn forget(client: &LockClient, job: &str) {
    if job.contains("exact") {
        assert!(
            client
                .register("once_per:report")
                .unwrap()
                .delete()
                .unwrap()
                .is_some()
        );
    } else {
        assert!(
            client
                .force_release(&client.inspect("once_per:report").unwrap())
                .unwrap()
        );
    }
}

#[test]
fn a_run_whose_process_was_killed_counts_unless_failed_runs_are_retried() {
    for form in ["exact", "by lock"] {
        let servers = Servers::start(3);
        let client = client(servers.urls());
        if form == "exact" {
            client.registers().form(true).unwrap();
        }
        killed(&servers, &format!("{form}, hang"));
        let again = call(&client, form);
        assert!(is_due_in(&again, DAY_SECONDS * 9 / 10), "{form}: {again:?}");
        forget(&client, form);

        assert!(
            eventually(LIMIT, || can_be_acquired(&client, "report")),
            "{form}"
        );
        let retried = format!("{form}, retry");
        killed(&servers, &format!("{retried}, hang"));
        // Until the run's lock has ended, which takes a few seconds, it is running as far as others
        // know.
        assert!(
            eventually(LIMIT, || ran(&call(&client, &retried))),
            "{form}"
        );
        let again = call(&client, &retried);
        assert!(is_due_in(&again, DAY_SECONDS * 9 / 10), "{form}: {again:?}");
    }
}

#[test]
fn a_process_that_was_killed_does_not_keep_others_from_short_periods() {
    for form in ["exact", "by lock"] {
        let servers = Servers::start(3);
        let client = client(servers.urls());
        if form == "exact" {
            client.registers().form(true).unwrap();
        }
        killed(&servers, &format!("{form}, short, hang"));
        let short = format!("{form}, short");
        assert!(eventually(LIMIT, || ran(&call(&client, &short))), "{form}");
    }
}

#[test]
fn a_lock_remembers_the_last_run_on_nodes_that_are_no_group() {
    let mut servers = Servers::start(3);
    let first = client(servers.urls());
    let second = client(servers.urls());
    let ran_by: Vec<Ran> = thread::scope(|scope| {
        let calls = [&first, &second, &first, &second].map(|it| scope.spawn(|| call(it, "")));
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(
        ran_by.iter().filter(|run| ran(run)).count(),
        1,
        "{ran_by:?}"
    );
    let again = call(&second, "");
    assert!(is_due_in(&again, DAY_SECONDS * 9 / 10), "{again:?}");
    let is_released = || can_be_acquired(&first, "report");
    assert!(
        eventually(LIMIT, is_released),
        "the lock of the run is released"
    );
    // Every node has it, so one may forget it.
    let has = |server: &Server| server.command(&["EXISTS", "once_per:report"]).integer() == 1;
    assert!(eventually(LIMIT, || servers.iter().all(has)));
    servers[1].restart();
    let again = call(&client(servers.urls()), "");
    assert!(is_due_in(&again, DAY_SECONDS * 9 / 10), "{again:?}");
    forget(&first, "");
    assert!(ran(&call(&first, "")));
}

#[test]
fn a_period_that_a_lock_remembers_ends_after_the_time_and_failed_runs_may_be_retried() {
    let servers = Servers::start(1);
    let client = client(servers.urls());
    assert!(ran(&call(&client, "short")));
    assert!(eventually(LIMIT, || ran(&call(&client, "short"))));

    let fails = |_: &redlatch::LockGuard| Err::<u32, _>("the printer is on fire".into());
    let failed: Result<_, Box<dyn std::error::Error>> =
        client.once_per("retried", DAY).retry_failed().run(fails);
    assert_eq!(failed.unwrap_err().to_string(), "the printer is on fire");
    let retried = || -> Ran {
        client
            .once_per("retried", DAY)
            .retry_failed()
            .run(|_lock| Ok(1))
    };
    assert!(ran(&retried()));
    assert!(is_due_in(&retried(), DAY_SECONDS * 9 / 10));
    let failed: Result<_, Box<dyn std::error::Error>> = client.once_per("counts", DAY).run(fails);
    assert_eq!(failed.unwrap_err().to_string(), "the printer is on fire");
    let again: Ran = client.once_per("counts", DAY).run(|_lock| Ok(1));
    assert!(is_due_in(&again, DAY_SECONDS * 9 / 10), "{again:?}");
}

#[test]
fn on_zookeeper_no_lock_remembers_a_day() {
    let ensemble = redlatch::embedded::Ensemble::start().unwrap();
    let client = LockClient::new([ensemble.url()]).unwrap();
    let run = call(&client, "");
    let Err(Error::Ttl(error)) = run else {
        panic!("{run:?}")
    };
    assert!(matches!(error, TtlError::HoldTooLong { .. }), "{error}");
}
