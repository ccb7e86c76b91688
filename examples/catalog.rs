//! A cache that many processes read, and that one of them at a time refreshes.
//!
//! ```sh
//! cargo run --features embedded --example catalog
//! cargo run --features embedded --example catalog -- redis://a redis://b redis://c
//! ```
//!
//! Without arguments it starts five Redis-like nodes inside this process.
//!
//! Readers hold the lock together, with `shared`; who refreshes the cache takes the exclusive lock,
//! so nobody reads a catalog that is half written. A process that finds the catalog out of date
//! gives its share back, waits for the exclusive lock, and looks again: another one may have been
//! faster.

use redlatch::LockClient;
use redlatch::embedded::Nodes;
use std::error::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(10);
const PROCESSES: usize = 6;

/// The supplier publishes so many editions of its prices, one after the other.
const EDITIONS: u64 = 5;

/// Readers have seen an edition so many times when the supplier publishes the next one.
const READS_PER_EDITION: usize = 60;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        let nodes = Nodes::start(5)?;
        story(&nodes.urls())
    } else {
        story(&urls)
    }
}

/// What the processes have in common: the catalog, without a lock of its own, and its source.
#[derive(Default)]
struct Shop {
    /// The edition that each price is from: between two refreshes, the same for all.
    prices: [AtomicU64; 8],
    /// The supplier's newest edition.
    published: AtomicU64,
    refreshes: AtomicU64,
    reads: AtomicUsize,
    readers: AtomicUsize,
    most_readers: AtomicUsize,
}

/// Every process reads until it has seen the last edition.
pub(crate) fn story(urls: &[String]) -> Result<(), Failure> {
    // With the process number, so that a second start of this program does not meet the first.
    let resource = format!("catalog:{}", std::process::id());
    let shop = Shop::default();
    shop.published.store(1, Ordering::SeqCst);
    thread::scope(|scope| {
        let processes: Vec<_> = (0..PROCESSES)
            .map(|_| {
                let resource = &resource;
                let shop = &shop;
                // Each with a client of its own, as programs on several machines have them.
                scope.spawn(move || process(&LockClient::new(urls)?, resource, shop))
            })
            .collect();
        processes
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a process panicked"))
    })?;

    let reads = shop.reads.into_inner();
    let most = shop.most_readers.into_inner();
    say(&format!(
        "{PROCESSES} processes read the catalog {reads} times, up to {most} at once."
    ));
    let refreshes = shop.refreshes.into_inner();
    say(&format!(
        "They refreshed it {refreshes} times for {EDITIONS} editions."
    ));
    match (refreshes == EDITIONS, most > 1) {
        (true, true) => Ok(()),
        (false, _) => Err("each edition should have been fetched once".into()),
        (_, false) => Err("nobody read beside another".into()),
    }
}

fn process(client: &LockClient, resource: &str, shop: &Shop) -> Result<(), Failure> {
    loop {
        let edition = read(client, resource, shop)?;
        if edition < shop.published.load(Ordering::SeqCst) {
            refresh(client, resource, shop)?;
        } else if edition == EDITIONS {
            return Ok(());
        }
    }
}

/// Reads the catalog beside other readers. Says which edition it is.
fn read(client: &LockClient, resource: &str, shop: &Shop) -> Result<u64, Failure> {
    let reading = client.request(resource).ttl(TTL).shared().lock()?;
    let readers = 1 + shop.readers.fetch_add(1, Ordering::SeqCst);
    shop.most_readers.fetch_max(readers, Ordering::SeqCst);
    let edition = shop.prices[0].load(Ordering::SeqCst);
    thread::sleep(Duration::from_millis(1)); // without the lock, somebody could write here
    if shop
        .prices
        .iter()
        .any(|price| price.load(Ordering::SeqCst) != edition)
    {
        return Err("the catalog is half written".into());
    }
    reading.ensure_held()?; // what was read is of one edition
    shop.readers.fetch_sub(1, Ordering::SeqCst);
    let reads = 1 + shop.reads.fetch_add(1, Ordering::SeqCst);
    if reads % READS_PER_EDITION == 0 {
        publish(shop);
    }
    Ok(edition) // dropping the guard gives the share back
}

/// Writes the newest edition into the catalog, while nobody reads it.
fn refresh(client: &LockClient, resource: &str, shop: &Shop) -> Result<(), Failure> {
    let writing = client.lock(resource, TTL)?;
    let newest = shop.published.load(Ordering::SeqCst);
    if shop.prices[0].load(Ordering::SeqCst) == newest {
        return Ok(()); // another process refreshed it while this one waited
    }
    for price in &shop.prices {
        writing.ensure_held()?;
        price.store(newest, Ordering::SeqCst);
        thread::yield_now(); // without the lock, somebody could read here
    }
    shop.refreshes.fetch_add(1, Ordering::SeqCst);
    say(&format!("   edition {newest} is in the catalog."));
    Ok(())
}

/// The supplier's next edition, if it is there, and the last one has been fetched.
fn publish(shop: &Shop) {
    let newest = shop.published.load(Ordering::SeqCst);
    if newest < EDITIONS && shop.refreshes.load(Ordering::SeqCst) == newest {
        let exchange = (Ordering::SeqCst, Ordering::SeqCst);
        let _ = shop
            .published
            .compare_exchange(newest, newest + 1, exchange.0, exchange.1);
    }
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
