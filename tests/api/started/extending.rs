//! Extensions without a thread: what they return, and that none comes after the release.

use std::task::Waker;
use std::time::Duration;

use super::kinds::{KINDS, is_free, request};
use redlatch::{Error, LockGuard, LossReason};
use support::backend::Backend;
use support::locks::{
    BRIEF, LIMIT, LONG, calls, connected, pause, resume, take, with_long_timeout,
    without_restart_guard,
};
use support::servers::Servers;
use support::tasks::{begin, block_on, keep_driver_busy, poll_with};
use support::waiters::await_keys;
use support::{eventually, on_each_backend};

on_each_backend!(
    each_kind_of_lock_is_extended_as_by_a_thread,
    an_extension_that_never_begins_changes_nothing,
    an_extension_that_is_dropped_disturbs_no_release,
    what_cannot_be_extended_is_refused_as_to_a_thread,
    a_lock_that_was_lost_is_not_extended,
);

fn each_kind_of_lock_is_extended_as_by_a_thread(backend: &Backend) {
    let (client, journal) = backend.recorded_client();
    let extended = || {
        let entries = journal.take_lock_events();
        entries.iter().filter(|it| it.name == "extended").count()
    };
    for (name, kind) in KINDS {
        let lock = kind(client.request(name).ttl(BRIEF)).lock();
        let mut lock = lock.expect("it is free");
        assert_eq!(block_on(lock.extend_async(LONG)), Ok(()), "{name}");
        // Those of a lock that is kept alive are reported too.
        assert!(extended() >= 1, "{name}");
        if !backend.is_zookeeper() {
            assert!(lock.remaining() > LONG / 2, "{name}");
        }
        assert!(lock.wait_lost(2 * BRIEF).is_none(), "{name}");
        assert_eq!(lock.release(), Ok(()), "{name}");
    }
    let mut set = client.request_all(["a", "b"]).ttl(BRIEF).lock();
    let set = set.as_mut().expect("they are free");
    assert_eq!(block_on(set.extend_async(LONG)), Ok(()));
    assert!(set.wait_lost(2 * BRIEF).is_none());
}

fn an_extension_that_never_begins_changes_nothing(backend: &Backend) {
    let client = backend.client();
    let mut lock = client.lock("name", BRIEF).expect("it is free");
    drop(lock.extend_async(LONG));
    assert!(eventually(LIMIT, || lock.remaining().is_zero()));
}

fn an_extension_that_is_dropped_disturbs_no_release(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let ways: [fn(LockGuard); 3] = [
        drop,
        |lock| assert_eq!(lock.release(), Ok(())),
        |lock| assert_eq!(block_on(lock.release_async()), Ok(())),
    ];
    for number in 0..30 {
        let mut lock = request(&client, "name").lock().expect("it is free");
        let mut extending = lock.extend_async(LONG);
        let _ = poll_with(&mut extending, Waker::noop());
        drop(extending);
        ways[number % ways.len()](lock);
    }
    assert!(eventually(LIMIT, || is_free(&other, "name")));
}

fn what_cannot_be_extended_is_refused_as_to_a_thread(backend: &Backend) {
    let client = backend.client();
    let most = 2 * BRIEF;
    let request = client.request("name").ttl(BRIEF).max_hold(most);
    let mut lock = request.lock().expect("it is free");
    let day = Duration::from_secs(24 * 60 * 60);
    for ttl in [Duration::ZERO, day, LONG] {
        let by_task = block_on(lock.extend_async(ttl));
        let by_thread = lock.extend(ttl);
        match (&by_task, &by_thread) {
            // How long it would be held grows from call to call.
            (
                Err(Error::HeldTooLong { max_hold, .. }),
                Err(Error::HeldTooLong {
                    max_hold: other, ..
                }),
            ) => assert_eq!((max_hold, other), (&most, &most)),
            _ => assert_eq!(by_task, by_thread),
        }
        assert!(by_task.is_err(), "{ttl:?}");
    }
    assert!(lock.ensure_held().is_ok());
}

fn a_lock_that_was_lost_is_not_extended(backend: &Backend) {
    let (client, journal) = backend.recorded_client();
    let mut lock = client.lock("name", BRIEF).expect("it is free");
    assert!(eventually(LIMIT, || lock.remaining().is_zero()));
    let result = block_on(lock.extend_async(LONG));
    let Err(Error::Lost(lost)) = result else {
        panic!("{result:?}");
    };
    assert_eq!(lost.reason(), LossReason::Expired);
    let entries = journal.take_lock_events();
    let reported = entries.iter().filter(|it| it.name == "lost");
    assert_eq!(reported.count(), 1, "{entries:?}");
    // One whose key is gone is lost as soon as the nodes have said so, also for who waits for that.
    let mut gone = request(&client, "gone").lock().expect("it is free");
    let seen = client.inspect("gone").expect("the nodes answer");
    assert_eq!(client.force_release(&seen), Ok(true));
    let result = block_on(gone.extend_async(LONG));
    assert!(matches!(result, Err(Error::Lost(_))), "{result:?}");
    assert_eq!(block_on(gone.lost()).reason(), LossReason::Gone);
}

#[test]
fn an_extension_without_a_majority_leaves_the_lock_as_it_was() {
    let servers = Servers::start(3);
    let settings = without_restart_guard(servers.urls());
    let settings = settings.node_timeout(Duration::from_millis(300));
    let client = connected(settings.build().expect("the settings are good"));
    let mut lock = take(&client, "name", LONG);
    pause(&servers, 2);
    let result = block_on(lock.extend_async(LONG));
    resume(&servers, 2);
    assert!(matches!(result, Err(Error::NoQuorum(_))), "{result:?}");
    assert!(lock.ensure_held().is_ok());
    assert_eq!(block_on(lock.extend_async(LONG)), Ok(()));
    assert_eq!(lock.release(), Ok(()));
    await_keys(&servers, &[]);
}

/// The thread that would send it is busy until the lock is released.
#[test]
fn no_extension_is_sent_after_the_release() {
    let servers = Servers::start(3);
    let settings = with_long_timeout(servers.urls()).wait_for_all(true);
    let client = connected(settings.build().expect("the settings are good"));
    let mut lock = take(&client, "name", LONG);
    let (busy, go_on) = keep_driver_busy(&client);
    drop(begin(lock.extend_async(LONG)));
    assert_eq!(lock.release(), Ok(()));
    let scripts = || -> u64 {
        let of = |server| calls(server, "eval") + calls(server, "evalsha");
        servers.iter().map(of).sum()
    };
    let before = scripts();
    go_on.send(()).expect("the driver waits");
    let busy = block_on(busy).expect("it is free");
    // What has begun later has been sent.
    let last = block_on(client.request("last").ttl(LONG).lock_async());
    let last = last.expect("it is free");
    assert_eq!(scripts(), before, "free locks need none");
    drop((busy, last));
    await_keys(&servers, &[]);
}
