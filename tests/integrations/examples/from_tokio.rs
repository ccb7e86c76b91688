//! Locks in a program that runs on tokio: held across `.await`, no longer waited for when the task
//! that wants them is dropped, and left by the work that has lost them.
//!
//! ```sh
//! cargo run -p redlatch-integrations --example from_tokio
//! cargo run -p redlatch-integrations --example from_tokio -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts three Redis-like nodes inside this process.
//!
//! Waits take no thread: `lock_async` is a future, and dropping it ends the wait, as `timeout` and
//! `select!` do.

use redlatch::embedded::Nodes;
use redlatch::{LockClient, LockGuard};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

type Failure = Box<dyn Error + Send + Sync>;

const TTL: Duration = Duration::from_secs(10);

/// Acquires a lock that is kept alive. If this future is dropped, the wait ends, and nothing is
/// left on the nodes.
async fn lock(client: &LockClient, name: &str) -> Result<LockGuard, Failure> {
    let request = client.request(name).ttl(TTL).keep_alive();
    Ok(request.lock_async().await?)
}

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(3)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    // As programs on two machines have them.
    let client = LockClient::new(urls)?;
    let other = LockClient::new(urls)?;
    runtime.block_on(tell(&client, &other))
}

async fn tell(client: &LockClient, other: &LockClient) -> Result<(), Failure> {
    // With the process number, so that several of these programs may run at a time.
    let name = format!("counter:{}", std::process::id());
    let counter = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let client = client.clone();
        let name = name.clone();
        let counter = Arc::clone(&counter);
        tasks.spawn(async move { count(&client, &name, &counter).await });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    let count = counter.load(Ordering::SeqCst);
    say(&format!(
        "20 tasks have counted to {count}, one after another."
    ));
    if count != 20 {
        return Err("two tasks have counted at a time".into());
    }
    let held = lock(client, &name).await?;
    if timeout(Duration::from_millis(300), lock(other, &name))
        .await
        .is_ok()
    {
        return Err("two have the lock at a time".into());
    }
    // The wait was dropped, and its place in the nodes' queue is given up.
    while waiters(other, &name).await? > 0 {
        sleep(Duration::from_millis(5)).await;
    }
    say("A wait that was dropped has left the queue.");
    held.release_async().await?;
    lock(other, &name).await?.release_async().await?;
    lose(client, other, &name).await
}

/// An operator removes the lock while there is work under it.
async fn lose(client: &LockClient, other: &LockClient, name: &str) -> Result<(), Failure> {
    let held = lock(client, name).await?;
    let work = async {
        remove(other, name).await?;
        sleep(TTL).await; // such as a query of another service
        Ok::<(), Failure>(())
    };
    tokio::select! {
        result = work => {
            result?;
            Err("the work has gone on without its lock".into())
        }
        lost = held.lost() => {
            say(&format!("The work has ended with its lock: {lost}."));
            Ok(())
        }
    }
}

/// Not atomic, but for the lock.
async fn count(client: &LockClient, name: &str, counter: &AtomicU32) -> Result<(), Failure> {
    let held = lock(client, name).await?;
    let count = counter.load(Ordering::SeqCst);
    sleep(Duration::from_millis(5)).await; // such as a query; the lock is extended meanwhile
    held.ensure_held()?;
    counter.store(count + 1, Ordering::SeqCst);
    drop(held); // written to the nodes, and not waited for
    Ok(())
}

async fn remove(client: &LockClient, name: &str) -> Result<(), Failure> {
    let client = client.clone();
    let name = name.to_owned();
    let removed = spawn_blocking(move || client.force_release(&client.inspect(name)?));
    match removed.await?? {
        true => Ok(()),
        false => Err("nobody has the lock".into()),
    }
}

async fn waiters(client: &LockClient, name: &str) -> Result<usize, Failure> {
    let client = client.clone();
    let name = name.to_owned();
    Ok(spawn_blocking(move || client.inspect(name))
        .await??
        .waiter_count)
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
