//! Clocks that jump: a server's clock, which makes its key expire early or late, and the client's
//! wall clock, on which nothing depends.

use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use redlatch::LossReason;

use support::cli::Client;
use support::cli::Value;
use support::eventually;
use support::locks::{
    LIMIT, LONG, all_nodes_client, gone, holders, idle, pttl, take, with_long_timeout,
};
use support::loss::{loss, loss_in};
use support::program::{end_with_parent, succeed, test_process};
use support::queue::finish;
use support::redis::Server;
use support::servers::Servers;
use support::shim::{Shim, set_clock};
use support::waiters::{await_queued, holder, pushed};

pub(crate) const CLOCK: &str = "REDLATCH_CLOCK";
const SECOND: i64 = 1_000_000_000;

/// The tolerance for two clocks that are read one after the other.
const CLOCK_READING: Duration = Duration::from_millis(1);

/// Three servers, each with a clock of its own that can be moved.
pub(crate) struct Clocks {
    pub(crate) servers: Vec<Server>,
    shims: Vec<Shim>,
}

impl Clocks {
    pub(crate) fn start() -> Self {
        let shims = vec![Shim::clock(), Shim::clock(), Shim::clock()];
        let server = |shim: &Shim| Server::start_in(&shim.environment(CLOCK), &[]);
        let clocks = Self {
            servers: shims.iter().map(server).collect(),
            shims,
        };
        assert!(
            (0..3).all(|index| clocks.ahead(index).abs() < 30),
            "no clock is moved yet"
        );
        clocks
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    /// Sets the clock of one server `seconds` ahead of the true time.
    pub(crate) fn set(&self, index: usize, seconds: i64) {
        set_clock(&self.shims[index].orders(), seconds * SECOND);
        assert!(eventually(LIMIT, || (self.ahead(index) - seconds).abs() < 30));
    }

    /// How many seconds a server's clock is ahead.
    fn ahead(&self, index: usize) -> i64 {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("after 1970");
        let time = self.servers[index].command(&["TIME"]);
        let Value::Array(time) = time else {
            panic!("{time:?}")
        };
        let seconds: i64 = time[0].text().parse().expect("a number");
        seconds - i64::try_from(now.as_secs()).expect("some seconds")
    }
}

#[test]
fn a_server_clock_that_jumps_forward_expires_its_key_and_a_majority_of_them_the_lock() {
    let clocks = Clocks::start();
    let client = all_nodes_client(clocks.urls());
    let other = all_nodes_client(clocks.urls());
    let mut guard = take(&client, "forward", LONG);
    let before = guard.remaining();
    clocks.set(0, 60);
    assert_eq!(
        pttl(&clocks.servers[0], "forward"),
        -2,
        "its key has expired"
    );
    assert!(
        guard.remaining() <= before,
        "a server's clock does not extend the validity"
    );
    assert!(other.try_lock("forward", LONG).unwrap().is_none());
    assert!(
        gone(&clocks.servers[..1], "forward"),
        "the other client's key there is removed"
    );
    // The remaining majority confirms it, and it is restored where it was lost.
    guard.extend(LONG).unwrap();
    assert!(eventually(LIMIT, || holders(&clocks.servers, "forward") == 3));

    clocks.set(1, 60);
    clocks.set(2, 60);
    assert_eq!(loss_in(guard.extend(LONG)), Some(LossReason::Gone));
    assert!(guard.remaining().is_zero());
    drop(guard);
    assert!(gone(&clocks.servers, "forward"));
    assert_eq!(take(&other, "forward", LONG).release(), Ok(()));
}

#[test]
fn a_server_clock_that_jumps_back_lengthens_no_lock() {
    let clocks = Clocks::start();
    let ttl = Duration::from_secs(2);
    for guard_restarts in [false, true] {
        let builder = with_long_timeout(clocks.urls()).restart_guard(guard_restarts);
        let client = builder.max_ttl(Duration::from_secs(3)).build().unwrap();
        let guard = client.lock("back", ttl).unwrap();
        (0..3).for_each(|index| clocks.set(index, -3_600));
        assert!(guard.remaining() <= ttl);
        // The servers keep the key for another hour, but the client's lock expires after its
        // seconds.
        assert!(eventually(LIMIT, || guard.remaining().is_zero()));
        assert_eq!(loss(&guard), Some(LossReason::Expired));
        assert!(
            clocks
                .servers
                .iter()
                .any(|server| pttl(server, "back") > 1_000_000)
        );
        drop(guard.release());
        assert!(
            gone(&clocks.servers, "back"),
            "a release removes the key at any time"
        );
        // The server reports a negative uptime of an hour, which must not matter.
        servers_are_greeted_anew(&clocks);
        let mut again = client.lock("again", ttl).unwrap();
        assert!(again.remaining() <= ttl);
        drop(again.extend(ttl));
        drop(again);
        (0..3).for_each(|index| clocks.set(index, 0));
    }
}

fn servers_are_greeted_anew(clocks: &Clocks) {
    for server in &clocks.servers {
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    idle();
}

#[test]
fn server_clocks_that_jump_both_ways_lengthen_no_lock_and_break_no_call() {
    let clocks = Clocks::start();
    let client = with_long_timeout(clocks.urls()).build().unwrap();
    let is_over = AtomicBool::new(false);
    let ttl = Duration::from_secs(5);
    thread::scope(|scope| {
        scope.spawn(|| {
            let offsets = [0, 60, -3_600, -1, 3, 86_400, -2, 1].into_iter().cycle();
            for (step, offset) in offsets.enumerate() {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                set_clock(&clocks.shims[step % 3].orders(), offset * SECOND);
                thread::sleep(Duration::from_millis(2));
            }
        });
        let start = Instant::now();
        let mut taken = 0;
        while start.elapsed() < Duration::from_secs(2) {
            let Ok(Some(mut guard)) = client.try_lock(format!("strobe-{taken}"), ttl) else {
                continue;
            };
            taken += 1;
            let before = guard.remaining();
            let seen = Instant::now();
            assert!(before < ttl);
            // The remaining validity grows only by a confirmed extension, and then to the ttl at
            // most.
            let extended = guard.extend(ttl);
            let passed = seen.elapsed();
            let most = if extended.is_ok() {
                ttl
            } else {
                before.saturating_sub(passed)
            };
            assert!(guard.remaining() <= most + CLOCK_READING, "{extended:?}");
            drop(guard.release());
        }
        assert!(taken > 0);
        is_over.store(true, Ordering::SeqCst);
    });
    (0..3).for_each(|index| clocks.set(index, 0));
    // Keys that were kept for longer than their ttl were released anyway.
    let empty = |server: &Server| server.command(&["DBSIZE"]).integer() == 0;
    let clean = || !client.nodes().is_empty() && clocks.servers.iter().all(empty);
    assert!(eventually(LIMIT, clean));
}

const URLS: &str = "REDLATCH_TEST_JUMP_URLS";
const NAME: &str = "REDLATCH_TEST_JUMP_NAME";

#[test]
fn jumps_of_the_clients_wall_clock_have_no_effect() {
    let servers = Servers::start(3);
    let shim = Shim::clock();
    let mut command = test_process("faults::clocks::as_a_client_whose_wall_clock_jumps");
    command
        .envs(shim.environment(CLOCK))
        .env(URLS, servers.urls().join(" "));
    succeed(&mut command);
    assert!(gone(&servers, "wall"));
}

/// The code of that client. Does nothing without the environment variable.
#[test]
fn as_a_client_whose_wall_clock_jumps() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let orders = PathBuf::from(env::var_os(CLOCK).expect("the shim has orders"));
    let client = all_nodes_client(urls.split(' '));
    let true_time = SystemTime::now();
    for hours in [24 * 365, -24, 0] {
        let mut guard = take(&client, "wall", LONG);
        let before = guard.remaining();
        let start = Instant::now();
        set_clock(&orders, hours * 3_600 * SECOND);
        let moved = SystemTime::now().duration_since(true_time);
        let forward = moved.is_ok_and(|by| by > Duration::from_secs(3_600));
        assert_eq!(forward, hours > 0, "the clock was moved");
        let after = guard.remaining();
        assert!(
            after <= before && after + start.elapsed() + LIMIT > before,
            "{after:?}"
        );
        guard.extend(LONG).unwrap();
        assert!(guard.remaining() <= LONG && guard.remaining() > LONG - LIMIT);
        let wait = Duration::from_millis(100);
        let start = Instant::now();
        let second = all_nodes_client(urls.split(' '));
        assert!(
            second
                .request("wall")
                .ttl(LONG)
                .try_lock_for(wait)
                .unwrap()
                .is_none()
        );
        assert!(start.elapsed() >= wait / 2 && start.elapsed() < LIMIT);
        assert_eq!(guard.release(), Ok(()));
    }
}

/// Waits for the lock, and adds this name to a list on the first server.
fn wait_and_sign(urls: &[String], name: &str) {
    let _guard = pushed(urls)
        .lock("queued", LONG)
        .expect("it is served in the end");
    let port = urls[0]
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let mut first = Client::connect(port).expect("a running server accepts");
    first.command(&["RPUSH", "order", name]);
}

#[test]
fn a_waiter_whose_wall_clock_is_wrong_is_served_when_it_is_its_turn() {
    let servers = Servers::start(3);
    let urls = servers.urls();
    let held = take(&holder(&urls), "queued", LONG);
    let mut waiting = Vec::new();
    for hours in [0, 24 * 365, -24 * 365, 0] {
        let urls = urls.clone();
        waiting.push(thread::spawn(move || {
            let shim = Shim::clock();
            set_clock(&shim.orders(), hours * 3_600 * SECOND);
            let mut command = test_process("faults::clocks::as_a_waiter_whose_wall_clock_is_wrong");
            command
                .envs(shim.environment(CLOCK))
                .env(URLS, urls.join(" "));
            succeed(command.env(NAME, hours.to_string()));
        }));
        await_queued(&servers, "queued", waiting.len());
    }
    drop(held);
    waiting.into_iter().for_each(finish);
    let order = servers[0].command(&["LRANGE", "order", "0", "-1"]);
    assert_eq!(
        order,
        Value::Array(["0", "8760", "-8760", "0"].map(Value::bulk).into())
    );
}

/// The code of that client. Does nothing without the environment variables.
#[test]
fn as_a_waiter_whose_wall_clock_is_wrong() {
    let (Ok(urls), Ok(name)) = (env::var(URLS), env::var(NAME)) else {
        return;
    };
    end_with_parent();
    let urls: Vec<_> = urls.split(' ').map(str::to_owned).collect();
    wait_and_sign(&urls, &name);
}
