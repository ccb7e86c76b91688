//! What servers refuse: rights, credentials, names, and requests that are too long. A caller is
//! told why in the server's words, at once, and no text has a password.

use redlatch::error::ResourceError;
use redlatch::{Error, LockClient};
use redlatch_zookeeper::message::Acl;
use std::thread;
use std::time::{Duration, Instant};
use support::needs_zookeeper;
use support::zookeeper::Shared;

use crate::operator::{MOMENT, Operator};
use crate::rig::{assert_held_for, client, keep};
use crate::{LIMIT, LONG};

const TIMEOUT: Duration = Duration::from_secs(7);
const PASSWORD: &str = "correct-horse";

/// The URL with these credentials in it.
fn with_credentials(shared: &Shared, credentials: &str) -> String {
    shared
        .url()
        .replace("zk://", &format!("zk://{credentials}@"))
}

/// The lock cannot be had, whoever long one would wait, and it is said why.
#[track_caller]
fn assert_refused(client: &LockClient, name: &str, word: &str) {
    let began = Instant::now();
    let Err(Error::NoQuorum(error)) = client.request(name).ttl(LONG).try_lock_for(LIMIT) else {
        panic!("it is refused")
    };
    assert!(
        began.elapsed() < LIMIT / 5,
        "no loop: {:?}",
        began.elapsed()
    );
    assert_eq!(error.reports().len(), 1);
    let texts = [
        error.to_string(),
        format!("{error:?}"),
        format!("{client:?}"),
    ];
    assert!(texts[0].contains(word), "{}", texts[0]);
    assert!(
        texts.iter().all(|text| !text.contains(PASSWORD)),
        "{texts:?}"
    );
    assert!(matches!(client.lock(name, LONG), Err(Error::NoQuorum(_))));
    assert!(matches!(
        client.try_lock(name, LONG),
        Err(Error::NoQuorum(_))
    ));
}

#[test]
fn a_root_of_another_user_is_refused_in_the_servers_words() {
    let shared = needs_zookeeper!().shared();
    let mut operator = Operator::new(shared[0].port());
    operator.authenticate("owner:secret");
    operator.create(shared.root(), Acl::Creator);
    assert_refused(&client(&shared.url(), TIMEOUT), "a", "NoAuth");
    // The server cannot know that these are wrong: it is the access list that they do not fit.
    let other = with_credentials(&shared, &format!("owner:{PASSWORD}"));
    assert_refused(&client(&other, TIMEOUT), "a", "NoAuth");
    let owner = client(&with_credentials(&shared, "owner:secret"), TIMEOUT);
    assert_eq!(owner.lock("a", LONG).unwrap().release(), Ok(()));
}

#[test]
fn a_lock_of_another_user_is_refused_and_other_locks_of_the_client_go_on() {
    let shared = needs_zookeeper!().shared();
    let mut operator = Operator::new(shared[0].port());
    operator.create(shared.root(), Acl::Anyone);
    operator.authenticate("owner:secret");
    operator.create(&format!("{}/a", shared.root()), Acl::Creator);
    let client = client(
        &with_credentials(&shared, &format!("app:{PASSWORD}")),
        TIMEOUT,
    );
    let guard = keep(&client, "b");
    assert_refused(&client, "a", "NoAuth");
    assert_held_for(&guard, MOMENT);
    assert_eq!(guard.release(), Ok(()));
}

#[test]
fn locks_of_a_user_are_not_others() {
    let shared = needs_zookeeper!().shared();
    let [app, same] = [(); 2].map(|()| {
        client(
            &with_credentials(&shared, &format!("app:{PASSWORD}")),
            TIMEOUT,
        )
    });
    let guard = keep(&app, "a");
    assert!(same.try_lock("a", LONG).unwrap().is_none());
    thread::scope(|scope| {
        let waiting = crate::rig::wait_for(scope, &same, "a");
        let mut operator = Operator::new(shared[0].port());
        operator.authenticate(&format!("app:{PASSWORD}"));
        operator.await_count(&format!("{}/a", shared.root()), 2);
        assert_eq!(guard.release(), Ok(()));
        assert_eq!(waiting.join().unwrap().1.release(), Ok(()));
    });
    assert_refused(&client(&shared.url(), TIMEOUT), "a", "NoAuth");
}

#[test]
fn a_quota_that_is_used_up_is_told_in_the_servers_words_and_ends_with_a_release() {
    let zookeeper = needs_zookeeper!();
    let ensemble = zookeeper.ensemble(1).line("enforceQuota=true").start();
    let [holder, other] = [(); 2].map(|()| client(&ensemble.url("/locks"), TIMEOUT));
    let mut operator = Operator::new(ensemble[0].port());
    operator.create("/locks", Acl::Anyone);
    operator.create("/zookeeper/quota/locks", Acl::Anyone);
    // The root, and one lock with its directory.
    let limits = "count=3,bytes=-1=;byteHardLimit=-1;countHardLimit=3";
    operator.create_with("/zookeeper/quota/locks/zookeeper_limits", limits);
    operator.create_with("/zookeeper/quota/locks/zookeeper_stats", "count=1,bytes=0");
    let guard = keep(&holder, "a");
    let Err(Error::NoQuorum(error)) = other.request("b").ttl(LONG).try_lock_for(MOMENT * 5) else {
        panic!("the quota is used up")
    };
    assert!(error.to_string().contains("QuotaExceeded"), "{error}");
    assert!(ensemble[0].log().to_lowercase().contains("quota exceeded"));
    assert_held_for(&guard, MOMENT);
    // It waits for room, as it would for the lock.
    thread::scope(|scope| {
        let waiting = crate::rig::wait_for(scope, &other, "a");
        thread::sleep(MOMENT);
        assert!(!waiting.is_finished());
        assert_eq!(guard.release(), Ok(()));
        assert_eq!(waiting.join().unwrap().1.ensure_held(), Ok(()));
    });
}

#[test]
fn names_that_have_no_place_are_refused_before_anything_is_sent() {
    let shared = needs_zookeeper!().shared();
    // Nothing is sent, so no server need be there.
    let nobody = support::port::Port::choose().number();
    let reserved = client(&format!("zk://127.0.0.1:{nobody}"), TIMEOUT);
    let refused = reserved.try_lock("zookeeper", LONG).err();
    assert!(matches!(refused, Some(Error::Resource(_))), "{refused:?}");
    let client = client(&shared.url(), TIMEOUT);
    assert!(
        client.try_lock("zookeeper", LONG).unwrap().is_some(),
        "below a root"
    );
    let long = "n".repeat(70_000);
    let refused = client.try_lock(&long, LONG).err();
    let is_too_long = matches!(
        refused,
        Some(Error::Resource(ResourceError::TooLong { .. }))
    );
    assert!(is_too_long, "{refused:?}");
}

#[test]
fn a_set_above_the_servers_limit_is_refused_and_costs_no_other_lock() {
    let zookeeper = needs_zookeeper!();
    let ensemble = zookeeper
        .ensemble(1)
        .property("jute.maxbuffer=4096")
        .start();
    let client = client(&ensemble.url("/locks"), TIMEOUT);
    let guard = keep(&client, "a");
    // The paths of so many locks make a request that is too long.
    let names: Vec<String> = (0..60)
        .map(|number| format!("{number}{}", "n".repeat(60)))
        .collect();
    let refused = client
        .request_all(&names)
        .ttl(LONG)
        .try_lock_for(Duration::from_secs(3));
    assert!(matches!(refused, Err(Error::NoQuorum(_))), "{refused:?}");
    assert_held_for(&guard, MOMENT);
    assert_eq!(client.lock("b", LONG).unwrap().release(), Ok(()));
    assert_eq!(guard.release(), Ok(()));
}
