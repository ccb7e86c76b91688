//! Names of the greatest length: everything works with them, and one byte more is refused at once.

use redlatch::error::ResourceError;
use redlatch::{Error, LockClient, LockGuard};
use support::locks::{LONG, connections, holders, take};
use support::queue::{finish, spawn_waiter};
use support::servers::Servers;
use support::waiters::{BY_PUSH, LONG_LEASE, await_keys, await_queued, holder, pushed, with_lease};

use std::time::Instant;

const PREFIX: &str = "prefix:";

/// What a name and the prefix may have together.
const KEY_MAX: usize = 63 * 1024;

fn longest() -> String {
    "n".repeat(KEY_MAX - PREFIX.len())
}

fn client(servers: &Servers) -> LockClient {
    let settings = with_lease(servers.urls(), LONG_LEASE).key_prefix(PREFIX);
    settings
        .wait_for_all(true)
        .build()
        .expect("the settings are good")
}

#[test]
fn a_lock_of_the_longest_name_can_be_waited_for_kept_fenced_and_inspected() {
    let servers = Servers::start(3);
    let name = longest();
    let key = format!("{PREFIX}{}", longest());
    let first = client(&servers);
    let second = client(&servers);
    let held = first
        .request(&name)
        .ttl(LONG)
        .fenced()
        .keep_alive()
        .owner("first")
        .lock()
        .unwrap();
    assert_eq!(holders(&servers, &key), 3);
    assert!(second.try_lock(&name, LONG).unwrap().is_none());
    let waiting = {
        let client = second.clone();
        let name = name.clone();
        let lock = move || client.request(&name).ttl(LONG).fenced().keep_alive().lock();
        spawn_waiter(move || lock().map(LockGuard::release))
    };
    await_queued(&servers, &key, 1);
    let seen = first.inspect(&name).unwrap();
    assert_eq!((seen.waiters.len(), seen.nodes.len()), (1, 3));
    assert!(
        first
            .locks("*")
            .all(|found| found.unwrap().as_ref() == name.as_bytes())
    );
    let start = Instant::now();
    assert_eq!(held.release(), Ok(()));
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    await_keys(&servers, &[]);
    // Nothing has cost a connection.
    let errors = |client: &LockClient| client.nodes().into_iter().filter_map(|it| it.last_error);
    assert_eq!(errors(&first).chain(errors(&second)).count(), 0);
}

#[test]
fn a_lock_of_the_longest_name_can_be_shared() {
    let servers = Servers::start(3);
    let name = longest();
    let key = format!("{PREFIX}{}", longest());
    let first = client(&servers);
    let second = client(&servers);
    let reading = first
        .request(&name)
        .ttl(LONG)
        .shared()
        .fenced()
        .lock()
        .unwrap();
    let waiting = {
        let client = second.clone();
        let name = name.clone();
        let permits = move || client.request(&name).ttl(LONG).one_of(2).lock();
        spawn_waiter(move || permits().map(LockGuard::release))
    };
    await_queued(&servers, &key, 1);
    let start = Instant::now();
    assert_eq!(reading.release(), Ok(()));
    assert_eq!(finish(waiting).unwrap(), Ok(()));
    assert!(start.elapsed() < BY_PUSH, "{:?}", start.elapsed());
    await_keys(&servers, &[]);
}

#[test]
fn one_byte_more_is_refused_at_once_and_nothing_is_sent() {
    let servers = Servers::start(3);
    let settings = with_lease(servers.urls(), LONG_LEASE).key_prefix(PREFIX);
    let client = settings.client_name("silent").build().unwrap();
    let name = longest() + "n";
    let error = ResourceError::TooLong {
        length: KEY_MAX + 1,
        most: KEY_MAX,
    };
    let refused = [
        client.lock(&name, LONG).map(drop),
        client.try_lock(&name, LONG).map(drop),
        client.request(&name).shared().lock().map(drop),
        client.request_all([&name]).lock().map(drop),
        client
            .request_all([&name[..KEY_MAX / 2], &name[KEY_MAX / 2..], "n"])
            .lock()
            .map(drop),
    ];
    let is_refused =
        |error: &Error| matches!(error, Error::Resource(ResourceError::TooLong { .. }));
    assert!(
        refused.iter().all(|it| it.as_ref().is_err_and(is_refused)),
        "{refused:?}"
    );
    assert_eq!(refused[0], Err(Error::Resource(error)));
    assert_eq!(client.inspect(&name).map(drop), Err(Error::Resource(error)));
    assert!(
        servers
            .iter()
            .all(|server| connections(server, "silent") == 0)
    );
    // The same client works with shorter names.
    drop(take(&pushed(servers.urls()), "n", LONG));
    drop(take(&holder(servers.urls()), longest(), LONG));
}
