//! Calls that nobody waits for any more: each ends, leaves nothing on the nodes, and disturbs no
//! other.

use std::env;
use std::process;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use redlatch::{CancelToken, Error, LockClient};
use support::eventually;
use support::locks::{LIMIT, LONG, calls, connected, pause, resume, take, with_long_timeout};
use support::program::{end_with_parent, succeed, test_process};
use support::redis::Server;
use support::servers::Servers;
use support::tasks::{begin, begin_to_end, block_on, keep_driver_busy, poll_with};
use support::waiters::{BY_PUSH, are_queued, await_keys, await_queued, holder, pushed};

const URLS: &str = "REDLATCH_TEST_CANCEL_URLS";

/// Several times as many as may have a round under way.
const CROWD: u64 = 800;

fn client(servers: &Servers) -> LockClient {
    let settings = with_long_timeout(servers.urls());
    settings.build().expect("the settings are good")
}

#[test]
fn a_call_whose_round_is_under_way_is_undone() {
    let servers = Servers::start(3);
    let client = connected(client(&servers));
    pause(&servers, 3);
    let first = begin(client.request("name").ttl(LONG).lock_async());
    let second = begin(client.request("name").ttl(LONG).lock_async());
    drop(first);
    resume(&servers, 3);
    let guard = block_on(second).expect("the first is cancelled");
    drop(guard);
    await_keys(&servers, &[]);
}

#[test]
fn a_call_in_the_nodes_queue_leaves_it() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let held = take(&holder, "name", LONG);
    let client = pushed(servers.urls());
    let waiting = begin(client.request("name").ttl(LONG).lock_async());
    await_queued(&servers, "name", 1);
    drop(waiting);
    // Long before its place would end by itself.
    assert!(eventually(BY_PUSH, || are_queued(&servers, "name", 0)));
    held.release().expect("it is held");
    await_keys(&servers, &[]);
}

#[test]
fn a_call_in_the_queue_of_this_process_leaves_it_and_the_next_keeps_its_place() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let held = take(&client, "name", LONG);
    let waiting = |_| begin(client.request("name").ttl(LONG).lock_async());
    let [first, second, third] = [(); 3].map(waiting);
    let waits = |count| {
        let seen = client.inspect("name").expect("the nodes answer");
        seen.own_threads.waiting == count
    };
    assert!(eventually(LIMIT, || waits(3)));
    drop(first);
    drop(third);
    assert!(eventually(LIMIT, || waits(1)));
    drop(held);
    drop(block_on(second).expect("it is its turn"));
    await_keys(&servers, &[]);
}

#[test]
fn a_call_that_is_dropped_as_it_is_handed_the_lock_gives_it_to_the_next() {
    let servers = Servers::start(3);
    let client = client(&servers);
    let held = take(&client, "name", LONG);
    let first = begin(client.request("name").ttl(LONG).lock_async());
    let second = begin(client.request("name").ttl(LONG).lock_async());
    let (busy, go_on) = keep_driver_busy(&client);
    // It has the lock before it is polled again.
    drop(held);
    drop(first);
    go_on.send(()).expect("the driver waits");
    drop(block_on(second).expect("it is handed on"));
    drop(busy);
    await_keys(&servers, &[]);
}

#[test]
fn a_lock_that_nobody_has_fetched_is_released() {
    let servers = Servers::start(3);
    let client = client(&servers);
    // The nodes have the key some time before the lock is there to be fetched.
    let pending = begin_to_end(client.request("name").ttl(LONG).lock_async());
    drop(pending);
    await_keys(&servers, &[]);
}

#[test]
fn tokens_end_the_calls_that_have_them() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let held = take(&holder, "name", LONG);
    let client = pushed(servers.urls());
    let token = CancelToken::new();
    let request = || client.request("name").ttl(LONG);
    // One asks the nodes, and one stands behind it.
    let asking = begin(request().cancelled_by(&token).lock_async());
    let behind = begin(request().cancelled_by(&token).lock_async());
    let other = begin(request().lock_async());
    await_queued(&servers, "name", 1);
    token.cancel();
    assert_eq!(block_on(asking).err(), Some(Error::Cancelled));
    assert_eq!(block_on(behind).err(), Some(Error::Cancelled));
    await_queued(&servers, "name", 1);
    client.cancel_token().cancel();
    assert_eq!(block_on(other).err(), Some(Error::Cancelled));
    await_queued(&servers, "name", 0);
    held.release().expect("it is held");
    await_keys(&servers, &[]);
}

/// Most of them stand in line until others have been answered. Those that somebody still waits for
/// do not stand behind them, and no lock is taken that nobody wants.
#[test]
fn calls_that_are_cancelled_as_they_stand_in_line_are_not_sent() {
    let servers = Servers::start(3);
    let client = connected(client(&servers));
    let before = scripts(&servers[0]);
    pause(&servers, 3);
    let token = CancelToken::new();
    let call = |number| {
        let request = client.request(format!("name {number}")).ttl(LONG);
        begin(request.cancelled_by(&token).lock_async())
    };
    let dropped: Vec<_> = (0..CROWD).map(call).collect();
    let cancelled: Vec<_> = (CROWD..2 * CROWD).map(call).collect();
    drop(dropped);
    token.cancel();
    resume(&servers, 3);
    for call in cancelled {
        assert_eq!(block_on(call).err(), Some(Error::Cancelled));
    }
    let next = block_on(client.request("next").ttl(LONG).lock_async());
    drop(next.expect("none of them has the room of others"));
    drop(client);
    await_keys(&servers, &[]);
    // Those that were under way, and what undoes them.
    let asked = scripts(&servers[0]) - before;
    assert!(asked < CROWD, "{asked} scripts for {} calls", 2 * CROWD);
}

fn scripts(server: &Server) -> u64 {
    calls(server, "eval") + calls(server, "evalsha")
}

/// Without the nodes' queue, a call that is refused pauses.
#[test]
fn a_pause_between_two_attempts_is_cut_short() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let held = take(&holder, "name", LONG);
    let settings = with_long_timeout(servers.urls()).queue(false);
    let client = settings.build().expect("the settings are good");
    let token = CancelToken::new();
    let request = || client.request("name").ttl(LONG);
    let cancelled = begin(request().cancelled_by(&token).lock_async());
    let dropped = begin(request().lock_async());
    let waits = begin(request().lock_async());
    thread::sleep(Duration::from_millis(300));
    token.cancel();
    assert_eq!(block_on(cancelled).err(), Some(Error::Cancelled));
    drop(dropped);
    drop(held);
    drop(block_on(waits).expect("it is free"));
    await_keys(&servers, &[]);
}

#[test]
fn hundreds_that_are_dropped_at_any_time_leave_nothing() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let client = pushed(servers.urls());
    let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
    let held: Vec<_> = names.iter().map(|name| take(&holder, name, LONG)).collect();
    for round in 0..10_u64 {
        let mut calls = Vec::new();
        for _ in 0..20 {
            let of_each = names
                .iter()
                .map(|name| begin(client.request(name).ttl(LONG).lock_async()));
            calls.extend(of_each);
        }
        thread::sleep(Duration::from_millis(round * 3));
        drop(calls);
    }
    drop(held);
    await_keys(&servers, &[]);
    for name in &names {
        drop(block_on(client.request(name).ttl(LONG).lock_async()).expect("it is free"));
    }
}

/// As after a timeout, when `main` returns: the last handle of the client is dropped, and the
/// process ends.
#[test]
fn a_program_that_ends_after_its_calls_were_dropped_leaves_nothing() {
    let servers = Servers::start(3);
    let holder = holder(servers.urls());
    let held = take(&holder, "name", LONG);
    let mut program = test_process("started::cancel::as_a_program_that_ends");
    succeed(program.env(URLS, servers.urls().join(" ")));
    assert!(are_queued(&servers, "name", 0));
    drop(held);
    await_keys(&servers, &[]);
}

#[test]
fn as_a_program_that_ends() {
    let Ok(urls) = env::var(URLS) else { return };
    end_with_parent();
    let client = pushed(urls.split(' '));
    let waits = begin(client.request("name").ttl(LONG).lock_async());
    let is_queued = || {
        client
            .inspect("name")
            .is_ok_and(|seen| seen.waiters.len() == 1)
    };
    assert!(eventually(LIMIT, is_queued));
    let mut asks = Vec::new();
    for number in 0..100 {
        let request = client.request(format!("free {number}")).ttl(LONG);
        let mut call = request.lock_async();
        // Some may have the lock already.
        let _ = poll_with(&mut call, Waker::noop());
        asks.push(call);
    }
    drop(client);
    drop(asks);
    drop(waits);
    process::exit(0);
}
