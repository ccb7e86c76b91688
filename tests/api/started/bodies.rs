//! Futures that run under a lock.

use std::future::{Future, pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::Instant;

use redlatch::{Error, LockClient, LockGuard, LossReason};
use support::backend::Backend;
use support::locks::{BRIEF, LIMIT, LONG};
use support::tasks::{block_on, poll_with};
use support::{eventually, on_each_backend};

on_each_backend!(
    a_body_runs_under_a_lock_that_is_kept_alive_and_released,
    the_error_of_a_body_is_returned_and_the_lock_released,
    a_body_is_dropped_when_its_lock_is_lost,
    a_body_that_ends_with_its_lock_lost_is_told_so,
    a_call_that_is_dropped_drops_its_body_and_releases_the_lock,
);

fn is_free(client: &LockClient, name: &str) -> bool {
    let taken = client.try_lock(name, LONG).expect("no error");
    taken.map(LockGuard::release).is_some()
}

/// As an executor takes it.
fn spawned<T>(task: impl Future<Output = T> + Send + 'static) -> impl Future<Output = T> + Unpin {
    Box::pin(task)
}

/// Is ready when a condition holds, which it looks at again and again.
async fn until(condition: impl Fn() -> bool) {
    poll_fn(|context| {
        if condition() {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Counts that it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn a_body_runs_under_a_lock_that_is_kept_alive_and_released(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let task = spawned(async move {
        let start = Instant::now();
        let mut looks = 0;
        let request = client.request("name").ttl(BRIEF);
        let value = request.with_lock_async(async |lock| {
            until(|| start.elapsed() > 2 * BRIEF).await;
            looks += 1;
            lock.ensure_held()?;
            Ok::<_, Error>(!is_free(&other, "name"))
        });
        let value = value.await;
        assert_eq!(looks, 1);
        assert!(is_free(&other, "name"));
        value
    });
    assert_eq!(block_on(task), Ok(true));
}

fn the_error_of_a_body_is_returned_and_the_lock_released(backend: &Backend) {
    let client = backend.client();
    let task = spawned(async move {
        let request = client.request("name").ttl(LONG);
        let body = async move |_: &LockGuard| Err::<(), _>(Error::Cancelled);
        let result = request.with_lock_async(body).await;
        assert!(eventually(LIMIT, || is_free(&client, "name")));
        result
    });
    assert_eq!(block_on(task), Err(Error::Cancelled));
}

fn a_body_is_dropped_when_its_lock_is_lost(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = Dropped(Arc::clone(&dropped));
    let task = spawned(async move {
        let request = client.request("name").ttl(BRIEF);
        let body = async move |_: &LockGuard| {
            let seen = other.inspect("name")?;
            assert_eq!(other.force_release(&seen), Ok(true));
            pending::<()>().await;
            drop(count);
            Ok::<_, Error>(())
        };
        request.with_lock_async(body).await
    });
    let result = block_on(task);
    let Err(Error::Lost(lost)) = result else {
        panic!("{result:?}");
    };
    assert_eq!(lost.reason(), LossReason::Gone);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

fn a_body_that_ends_with_its_lock_lost_is_told_so(backend: &Backend) {
    let client = backend.client();
    let task = spawned(async move {
        let request = client.request("name").ttl(BRIEF);
        let body = async |lock: &LockGuard| {
            let seen = client.inspect("name")?;
            assert_eq!(client.force_release(&seen), Ok(true));
            // It does not look at anything else meanwhile.
            assert!(lock.wait_lost(LIMIT).is_some());
            Ok::<_, Error>(())
        };
        request.with_lock_async(body).await
    });
    assert!(matches!(block_on(task), Err(Error::Lost(_))));
}

fn a_call_that_is_dropped_drops_its_body_and_releases_the_lock(backend: &Backend) {
    let client = backend.client();
    let other = backend.client();
    let dropped = Arc::new(AtomicUsize::new(0));
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Dropped(Arc::clone(&dropped));
    let runs = Arc::clone(&begun);
    let mut task = spawned(async move {
        let request = client.request("name").ttl(LONG);
        let body = async move |_: &LockGuard| {
            runs.fetch_add(1, Ordering::SeqCst);
            pending::<()>().await;
            drop(count);
            Ok::<_, Error>(())
        };
        request.with_lock_async(body).await
    });
    let has_begun = || {
        assert!(poll_with(&mut task, Waker::noop()).is_pending());
        begun.load(Ordering::SeqCst) == 1
    };
    assert!(eventually(LIMIT, has_begun));
    assert!(!is_free(&other, "name"));
    drop(task);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert!(eventually(LIMIT, || is_free(&other, "name")));
}
