//! Readers of a resource beside each other, and writers alone.

#![expect(clippy::unwrap_used, reason = "an error fails the test")]

use redlatch::{LockClient, LockGuard};
use support::cli::Value;
use support::eventually;
use support::fencing::{fenced, token};
use support::locks::{LIMIT, LONG, take, value, without_restart_guard};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{await_keys, holder};

fn read(client: &LockClient) -> Option<LockGuard> {
    client
        .request("name")
        .ttl(LONG)
        .shared()
        .try_lock()
        .unwrap()
}

#[test]
fn readers_hold_the_lock_together_and_exclude_writers() {
    support::needs!(Shares);
    for nodes in [1, 2, 3, 5] {
        let servers = Servers::start(nodes);
        let one = holder(servers.urls());
        let other = holder(servers.urls());
        let wait = || {
            one.request("name")
                .ttl(LONG)
                .shared()
                .try_lock_for(LONG / 10)
                .unwrap()
        };
        let readers = [wait().unwrap(), wait().unwrap(), read(&other).unwrap()];
        assert!(other.try_lock("name", LONG).unwrap().is_none());
        for server in servers.iter() {
            let set = server.command(&["SET", "name", "of another program", "NX", "PX", "1000"]);
            assert_eq!(set, Value::Null);
        }
        for reader in readers {
            reader.ensure_held().unwrap();
            assert_eq!((reader.slot(), reader.release()), (None, Ok(())));
        }
        let writer = take(&other, "name", LONG);
        assert!(read(&one).is_none());
        assert_eq!(writer.release(), Ok(()));
        await_keys(&servers, &[]);
    }
}

#[test]
fn a_key_of_another_program_keeps_readers_out() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    for server in servers.iter() {
        server.command(&["SET", "name", "of another program", "NX", "PX", "60000"]);
    }
    assert!(read(&client).is_none());
    for server in servers.iter() {
        assert_eq!(value(server, "name").unwrap(), b"of another program");
    }
}

#[test]
fn a_readers_number_is_that_of_the_last_writer_and_below_the_next() {
    support::needs!(Shares);
    let servers = Servers::start(5);
    let client = holder(servers.urls());
    let reader = || {
        client
            .request("name")
            .ttl(LONG)
            .shared()
            .fenced()
            .lock()
            .unwrap()
    };
    let first = token(&reader());
    let before = token(&fenced(&client, "name"));
    assert!(before > first, "a writer after the reader");
    let reading = reader();
    assert!(token(&reading) >= before);
    // Numbers of which only a minority knows.
    servers[0].command(&["SET", "name:redlatch:fence", &(before + 9).to_string()]);
    let confused = token(&reader());
    assert!(confused >= before);
    drop(reading);
    assert!(token(&fenced(&client, "name")) > confused);
}

#[test]
fn without_a_queue_readers_and_writers_try_again_after_pauses() {
    support::needs!(Shares);
    let servers = Servers::start(3);
    let client = holder(servers.urls());
    let unqueued = || {
        without_restart_guard(servers.urls())
            .queue(false)
            .build()
            .unwrap()
    };
    let writer = take(&client, "name", LONG);
    let other = unqueued();
    let waiting = spawn_waiter(move || {
        other
            .request("name")
            .ttl(LONG)
            .shared()
            .lock()
            .map(LockGuard::release)
    });
    drop(writer);
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    assert!(eventually(LIMIT, || take_if_free(&client)));
}

fn take_if_free(client: &LockClient) -> bool {
    client.try_lock("name", LONG).unwrap().is_some()
}
