//! What the tests share: clients, waiters in threads, and what is said of a lock.

use redlatch::{Builder, LockClient, LockGuard, LossReason};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};
use support::zookeeper::Link;

use crate::LIMIT;
use crate::LONG;

/// A client's settings, with this timeout of its session.
pub(crate) fn builder(url: &str, session_timeout: Duration) -> Builder {
    LockClient::builder()
        .nodes([url])
        .session_timeout(session_timeout)
}

#[track_caller]
pub(crate) fn client(url: &str, session_timeout: Duration) -> LockClient {
    builder(url, session_timeout).build().unwrap()
}

/// The URL of a server behind a link.
pub(crate) fn through(link: &Link, root: &str) -> String {
    format!("zk://127.0.0.1:{}{root}", link.port())
}

/// A lock that is kept alive: it ends with its session, or its guard.
#[track_caller]
pub(crate) fn keep(client: &LockClient, name: &str) -> LockGuard {
    client.request(name).ttl(LONG).keep_alive().lock().unwrap()
}

/// Waits for the lock in a thread of its own. Returns when it was granted, and the guard.
pub(crate) fn wait_for<'scope>(
    scope: &'scope Scope<'scope, '_>,
    client: &'scope LockClient,
    name: &'static str,
) -> ScopedJoinHandle<'scope, (Instant, LockGuard)> {
    scope.spawn(move || {
        // Not for ever: a test that fails meanwhile must end.
        let guard = client
            .request(name)
            .ttl(LONG)
            .try_lock_for(LIMIT * 2)
            .unwrap();
        (Instant::now(), guard.expect("it is granted in the end"))
    })
}

/// Why the lock is lost; `None` if it is held.
pub(crate) use support::loss::loss;

/// What `on_lost` is told, when it is.
pub(crate) fn told(guard: &LockGuard) -> Receiver<LossReason> {
    let (tell, told): (Sender<LossReason>, _) = channel();
    // Nobody may listen any more.
    let tell = move |lost: redlatch::LockLost| {
        let _ = tell.send(lost.reason());
    };
    guard.on_lost(tell).unwrap();
    told
}

/// Looks at the lock again and again for so long: it is held all the time.
#[track_caller]
pub(crate) fn assert_held_for(guard: &LockGuard, time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        assert_eq!(guard.ensure_held(), Ok(()), "after {:?}", began.elapsed());
        thread::sleep(Duration::from_millis(10));
    }
}
