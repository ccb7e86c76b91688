//! Locks that are taken away by force: what was seen, and nothing else.

mod support;

use redlatch::{ExtendError, ForceReleaseError, InspectError, LockClient, Lost, Released};
use support::locks::{LONG, holders, take, thorough};
use support::servers::Servers;

/// Takes a lock away as it is now.
fn force(client: &LockClient, name: &str) -> Result<bool, ForceReleaseError> {
    client.force_release(&client.inspect(name).expect("a majority answers"))
}

#[test]
fn by_force_a_lock_is_taken_from_whoever_has_it() {
    let servers = Servers::start(3);
    let (client, other) = (thorough(servers.urls()), thorough(servers.urls()));
    assert!(!force(&other, "job").unwrap(), "nobody holds it");
    let (released, mut extended) = (take(&client, "job", LONG), take(&client, "more", LONG));
    assert!(force(&other, "job").unwrap() && force(&other, "more").unwrap());
    assert_eq!(holders(&servers, "job") + holders(&servers, "more"), 0);
    let next = take(&other, "job", LONG);
    // Who had it is told when it asks, and does no harm to the next.
    assert_eq!(released.release().unwrap(), Released::TooLate);
    assert_eq!(extended.extend(LONG).unwrap_err(), ExtendError::Lost(Lost::Gone));
    assert_eq!(next.release().unwrap(), Released::InTime);

    // A key on one node is enough to say that there was one; any string may be another program's.
    servers[1].command(&["SET", "odd", "x", "PX", "60000"]);
    assert!(force(&other, "odd").unwrap());
    assert_eq!(servers[1].command(&["EXISTS", "odd"]).integer(), 0);
    for name in ["", "job:redlatch:fence"] {
        assert!(matches!(other.inspect(name), Err(InspectError::Resource(_))));
    }
}

#[test]
fn by_force_nothing_is_taken_but_what_was_seen() {
    let servers = Servers::start(3);
    let (client, other) = (thorough(servers.urls()), thorough(servers.urls()));
    let first = take(&client, "job", LONG);
    let seen = other.inspect("job").unwrap();
    assert_eq!(first.release().unwrap(), Released::InTime);
    assert!(!other.force_release(&seen).unwrap(), "it is gone");
    let next = take(&client, "job", LONG);
    assert!(!other.force_release(&seen).unwrap(), "and this is another");
    assert_eq!(next.release().unwrap(), Released::InTime);
    // What is left of several attempts goes at once, each from where it is.
    for (server, value) in servers.iter().zip(["one", "two", "three"]) {
        server.command(&["SET", "job", value, "PX", "60000"]);
    }
    assert!(force(&other, "job").unwrap());
    assert_eq!(holders(&servers, "job"), 0);
}

#[test]
fn by_force_nothing_is_taken_that_is_no_lock() {
    let servers = Servers::start(3);
    let client = thorough(servers.urls());
    let long = "x".repeat(1024);
    let others: [&[&str]; 5] = [
        &["LPUSH", "data", "x"],
        &["HSET", "data", "field", "x"],
        &["SET", "data", "x"],
        &["SET", "data", "", "PX", "60000"],
        &["SET", "data", &long, "PX", "60000"],
    ];
    for words in others {
        servers[1].command(&["DEL", "data"]);
        servers[1].command(words);
        let error = force(&client, "data").unwrap_err();
        let ForceReleaseError::NotALock { endpoints } = &error else { panic!("{error}") };
        assert_eq!(endpoints.len(), 1);
        assert!(error.to_string().contains(&*endpoints[0]), "{error}");
        assert_eq!(servers[1].command(&["EXISTS", "data"]).integer(), 1, "{words:?}");
        // A lock beside it is taken all the same, and that stays.
        servers[0].command(&["SET", "data", "lock", "PX", "60000"]);
        assert!(force(&client, "data").unwrap(), "{words:?}");
        assert_eq!(servers[0].command(&["EXISTS", "data"]).integer(), 0);
        assert_eq!(servers[1].command(&["EXISTS", "data"]).integer(), 1, "{words:?}");
    }
}

#[test]
fn by_force_a_fencing_counter_is_not_taken() {
    let servers = Servers::start(3);
    let (client, other) = (thorough(servers.urls()), thorough(servers.urls()));
    let first = client.request("job").ttl(LONG).fenced().acquire().unwrap().unwrap();
    assert!(force(&other, "job").unwrap());
    let next = other.request("job").ttl(LONG).fenced().one_attempt().acquire().unwrap().unwrap();
    assert!(next.fencing_token() > first.fencing_token(), "the late writer can be told apart");
    assert_eq!(first.release().unwrap(), Released::TooLate);
}
