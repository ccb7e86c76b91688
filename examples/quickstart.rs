//! Two clients compete for a lock over five nodes, and nodes fail.
//!
//! ```sh
//! cargo run --features embedded --example quickstart
//! cargo run --features embedded --example quickstart -- redis://a redis://b redis://c
//! cargo run --features embedded,zookeeper --example quickstart -- --zookeeper
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process and later stops some of
//! them. With URLs it runs on those nodes, and stops none. If they were just started, it says so
//! and waits for some seconds: see `Builder::restart_guard`. With `--zookeeper` the same happens on
//! a ZooKeeper-like server inside this process, whose session with a holder then ends.

use redlatch::embedded::Nodes;
use redlatch::{Error, LockClient, LockGuard};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

const TTL: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("That did not work: {error}."));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls == ["--zookeeper"] {
        return on_zookeeper("orders:42");
    }
    if urls.is_empty() {
        say("Starting five Redis-like nodes inside this process.");
        let nodes = Nodes::start(5)?;
        story(&nodes.urls(), "orders:42")?;
        failures(&nodes, "orders:42")
    } else {
        say(&format!(
            "Using your {} nodes; none of them will be stopped.",
            urls.len()
        ));
        story(
            &urls,
            &format!("redlatch-quickstart:{}", std::process::id()),
        )
    }
}

/// The same on ZooKeeper, and a session that ends.
#[cfg(feature = "zookeeper")]
fn on_zookeeper(resource: &str) -> Result<(), Box<dyn std::error::Error>> {
    say("Starting a ZooKeeper-like server inside this process.");
    let ensemble = redlatch::embedded::Ensemble::start()?;
    let urls = [ensemble.url()];
    story(&urls, resource)?;
    let carol = LockClient::new(urls)?;
    let lock = expect_lock(carol.try_lock(resource, TTL)?);
    say(
        "Carol holds the lock now, and the server ends her session, as if it had not heard of her.",
    );
    ensemble.expire_sessions();
    let lost = lock.wait_lost(TTL).ok_or("the lock is still held")?;
    say(&format!("Carol learns of it: {lost}."));
    Ok(())
}

#[cfg(not(feature = "zookeeper"))]
fn on_zookeeper(_: &str) -> Result<(), Box<dyn std::error::Error>> {
    Err("this program was built without the feature zookeeper".into())
}

/// Two clients want the same lock.
fn story(urls: &[String], resource: &str) -> Result<(), Box<dyn std::error::Error>> {
    // Two clients, as two programs on two machines would have them. No ttl is longer than TTL
    // here, so the grants of nodes that restarted need not be ignored for longer than that.
    let client = || LockClient::builder().nodes(urls).max_ttl(TTL).build();
    let alice = client()?;
    let bob = client()?;
    wait_for_young_nodes(&alice, resource)?;

    let lock = expect_lock(alice.try_lock(resource, TTL)?);
    let majority = urls.len() / 2 + 1;
    say(&format!(
        "Alice holds the lock of '{resource}': at least {majority} of {} nodes agreed.",
        urls.len()
    ));
    say(&format!(
        "   It is valid for another {:.2} s.",
        lock.remaining().as_secs_f64()
    ));

    let refused = bob.try_lock(resource, TTL)?.is_none();
    say(&format!(
        "Bob asks for it and is {}.",
        if refused {
            "refused"
        } else {
            "granted it, too?!"
        }
    ));

    let (asked, waiting) = mpsc::channel();
    let bob = thread::spawn({
        let resource = resource.to_owned();
        move || -> Result<Duration, Error> {
            let start = Instant::now();
            let _ = asked.send(());
            let lock = bob.lock(&resource, TTL)?;
            let waited = start.elapsed();
            drop(lock); // releases the lock without waiting for the nodes
            Ok(waited)
        }
    });
    waiting.recv()?;
    say("Bob asks again, and this time he waits.");
    thread::sleep(Duration::from_millis(200));
    lock.release()?;
    say("Alice is done and has released the lock, which she held to the end.");
    let waited = bob.join().map_err(|_| "Bob panicked")??;
    say(&format!(
        "Bob got the lock after waiting {:.0} ms, and has released it.",
        waited.as_secs_f64() * 1e3
    ));

    for node in alice.nodes() {
        let server = node.server.as_deref();
        let version = node.version.as_deref();
        let name = format!("{} {}", server.unwrap_or("?"), version.unwrap_or("?"));
        say(&format!(
            "   {}: {name}, answers in {:.1?}",
            node.url,
            node.round_trip.unwrap_or_default()
        ));
    }
    Ok(())
}

/// Grants of nodes that were started a moment ago do not count yet. Says so, and waits until those
/// of a majority do.
fn wait_for_young_nodes(
    client: &LockClient,
    resource: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let nodes = client.nodes();
    let young = nodes
        .iter()
        .filter_map(|node| Some((&node.url, node.quarantine?)));
    let young: Vec<_> = young.collect();
    for (url, left) in &young {
        let left = left.as_secs_f64();
        say(&format!(
            "   {url} was started a moment ago: its grants count in {left:.0} s."
        ));
    }
    if young.len() > (nodes.len() - 1) / 2 {
        say(&format!(
            "A node that restarted may have forgotten who holds a lock. Its grants count when it\n\
             has been up for the longest ttl: `max_ttl`, {TTL:?} here and 60 s by default.\n\
             Until then, `try_lock` returns an error that says so; `lock` waits, as now.\n\
             (For nodes that write every change to disk at once, turn this off: `restart_guard`.)"
        ));
        client.lock(resource, TTL)?.release()?;
    }
    Ok(())
}

/// Nodes fail: first a minority of them, then a majority.
fn failures(nodes: &Nodes, resource: &str) -> Result<(), Box<dyn std::error::Error>> {
    let carol = LockClient::new(nodes.urls())?;

    nodes.stop(0);
    nodes.stop(1);
    say("Two of the five nodes are stopped now.");
    let lock = expect_lock(carol.try_lock(resource, TTL)?);
    say("Carol gets the lock anyway: three of five are a majority.");
    lock.release()?;

    nodes.stop(2);
    say("A third node is stopped. Two of five are not a majority.");
    match carol.try_lock(resource, TTL) {
        Err(Error::NoQuorum(error)) => {
            say("Carol gets an error: too few nodes answered to know who holds the lock.");
            for report in error.reports() {
                say(&format!("   {report}"));
            }
        }
        other => return Err(format!("there is no majority, but {other:?}").into()),
    }
    say("The README says what redlatch guarantees, and the guide what no lock can guarantee.");
    Ok(())
}

fn expect_lock(lock: Option<LockGuard>) -> LockGuard {
    lock.expect("no other client wants this lock")
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
