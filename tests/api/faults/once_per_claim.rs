//! The claim of a run is what keeps it from being run twice: the lock may be lost before it.

#![expect(clippy::unwrap_used, reason = "a call that fails fails the test")]

use std::thread;
use std::time::Duration;

use redlatch::{Error, LockClient, OncePerRun};
use support::eventually;
use support::locks::{LIMIT, without_restart_guard};
use support::proxy::{Mode, proxied};
use support::redis::Server;
use support::servers::Servers;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How late the replies to the slow client are until it has the lock: long enough to see that.
const SLOW: Duration = Duration::from_millis(100);

/// How late they are then: long enough for the other client's whole run.
const LATE: Duration = Duration::from_secs(1);

fn client(urls: Vec<String>, name: &str) -> LockClient {
    let settings = without_restart_guard(urls).client_name(name);
    settings.node_timeout(3 * LATE).build().unwrap()
}

/// Was the time the last that the slow client asked this server for? A `PING` follows it.
fn was_asked_for_time(server: &Server) -> bool {
    let list = server.command(&["CLIENT", "LIST"]).text();
    list.lines()
        .any(|line| line.contains(" name=slow ") && line.contains(" cmd=ping "))
}

#[test]
fn a_run_that_another_client_claims_between_the_look_and_the_claim_is_its_alone() {
    let servers = Servers::start(3);
    let (proxies, slow_urls) = proxied(&servers);
    let delay = |to_client| {
        let mode = Mode::Delay {
            to_server: Duration::ZERO,
            to_client,
        };
        proxies.iter().for_each(|proxy| proxy.set(mode));
    };
    let fast = client(servers.urls(), "fast");
    let slow = client(slow_urls, "slow");
    fast.registers().form(true).unwrap();
    let call = |client: &LockClient, value: u32| -> Result<_, Error> {
        let request = client.request("report").ttl(20 * LATE);
        request.once_per(DAY).exact().run(|_lock| Ok(value))
    };
    thread::scope(|scope| {
        delay(SLOW);
        let first = scope.spawn(|| call(&slow, 1));
        assert!(eventually(LIMIT, || fast
            .inspect("report")
            .unwrap()
            .holder_count
            > 0));
        delay(LATE);
        // It has the value of the register then, and claims the run as soon as it has the time.
        assert!(eventually(LIMIT, || servers.iter().all(was_asked_for_time)));
        assert!(
            fast.force_release(&fast.inspect("report").unwrap())
                .unwrap()
        );
        assert_eq!(call(&fast, 2), Ok(OncePerRun::Ran(2)));
        let first = first.join().unwrap();
        assert!(matches!(first, Ok(OncePerRun::NotDue { .. })), "{first:?}");
    });
}
