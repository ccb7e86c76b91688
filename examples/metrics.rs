//! Events turned into metrics that Prometheus can scrape.
//!
//! ```sh
//! cargo run --features embedded --example metrics
//! ```
//!
//! Three embedded nodes, a few threads that want the same locks, and a node that goes and comes
//! back. At the end it prints the metrics, in Prometheus' text format. Counters and histograms are
//! atomics: handling an event allocates nothing and takes no mutex.
//!
//! This needs no other crate. A program that uses the crate `metrics` has all this, and more, by
//! `Builder::metrics`.

use redlatch::embedded::Nodes;
use redlatch::{Event, LockClient};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Upper bounds of the buckets of a histogram, in microseconds: from a round over nodes in the same
/// rack to a ttl.
const BOUNDS: [u64; 8] = [
    100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000, 10_000_000,
];

/// The kinds of events that are counted. Listed, so that each has a line before its first event.
const KINDS: [&str; 11] = [
    "acquired",
    "contended",
    "failed",
    "extended",
    "not_extended",
    "lost",
    "released",
    "node_slow",
    "queued",
    "woken",
    "node_queue",
];

/// The metrics of one client.
struct Metrics {
    events: BTreeMap<&'static str, AtomicU64>,
    attempts: BTreeMap<&'static str, AtomicU64>,
    waited: Histogram,
    held: Histogram,
    /// By URL. Complete before the first event, so that no event adds an entry.
    nodes_up: BTreeMap<String, AtomicU64>,
}

#[derive(Default)]
struct Histogram {
    /// One more than there are bounds: beyond the last.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_micros: AtomicU64,
}

impl Metrics {
    fn new(urls: &[String]) -> Self {
        let outcomes = [
            "granted",
            "contended",
            "no_quorum",
            "too_slow",
            "same_server",
        ];
        Self {
            events: KINDS
                .into_iter()
                .map(|kind| (kind, AtomicU64::new(0)))
                .collect(),
            attempts: outcomes
                .into_iter()
                .map(|name| (name, AtomicU64::new(0)))
                .collect(),
            waited: Histogram::default(),
            held: Histogram::default(),
            nodes_up: urls
                .iter()
                .map(|url| (url.clone(), AtomicU64::new(0)))
                .collect(),
        }
    }

    /// Called for each event. Resources are not labels, because there may be any number of them.
    fn count(&self, event: &Event<'_>) {
        if let Some(count) = self.events.get(event.name()) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        match event {
            Event::Attempt { outcome, .. } => {
                if let Some(count) = self.attempts.get(outcome.name()) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            Event::Acquired { waited, .. } => self.waited.observe(*waited),
            Event::Released { held, .. } => self.held.observe(*held),
            Event::NodeUp { url, .. } => self.set_up(url, 1),
            Event::NodeDown { url, .. } => self.set_up(url, 0),
            _ => {}
        }
    }

    fn set_up(&self, url: &str, is_up: u64) {
        if let Some(gauge) = self.nodes_up.get(url) {
            gauge.store(is_up, Ordering::Relaxed);
        }
    }

    /// Prometheus' text format: <https://prometheus.io/docs/instrumenting/exposition_formats/>
    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        writeln!(text, "# TYPE redlatch_events_total counter")?;
        for (kind, count) in &self.events {
            let count = count.load(Ordering::Relaxed);
            writeln!(text, "redlatch_events_total{{event=\"{kind}\"}} {count}")?;
        }
        writeln!(text, "# TYPE redlatch_attempts_total counter")?;
        for (outcome, count) in &self.attempts {
            let count = count.load(Ordering::Relaxed);
            writeln!(
                text,
                "redlatch_attempts_total{{outcome=\"{outcome}\"}} {count}"
            )?;
        }
        writeln!(text, "# TYPE redlatch_node_up gauge")?;
        for (url, gauge) in &self.nodes_up {
            let is_up = gauge.load(Ordering::Relaxed);
            writeln!(text, "redlatch_node_up{{node=\"{url}\"}} {is_up}")?;
        }
        self.waited.write("redlatch_waited_seconds", &mut text)?;
        self.held.write("redlatch_held_seconds", &mut text)?;
        Ok(text)
    }
}

impl Histogram {
    fn observe(&self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS
            .iter()
            .position(|bound| micros <= *bound)
            .unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn write(&self, name: &str, text: &mut String) -> std::fmt::Result {
        writeln!(text, "# TYPE {name} histogram")?;
        let mut count = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            // Each bucket of Prometheus counts those before it as well.
            count += bucket.load(Ordering::Relaxed);
            let bound = BOUNDS
                .get(index)
                .map(|micros| (*micros as f64 / 1e6).to_string());
            let bound = bound.as_deref().unwrap_or("+Inf");
            writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}")?;
        }
        let sum = self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
        writeln!(text, "{name}_sum {sum}\n{name}_count {count}")
    }
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this program reports on the terminal"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let nodes = Nodes::start(3)?;
    // Events name nodes by the same URLs as `nodes()`.
    let urls: Vec<_> = LockClient::new(nodes.urls())?.nodes();
    let urls: Vec<_> = urls.iter().map(|node| node.url.to_string()).collect();

    let metrics = Arc::new(Metrics::new(&urls));
    let counting = Arc::clone(&metrics);
    let client = LockClient::builder()
        .nodes(nodes.urls())
        .on_event(move |event| {
            counting.count(event);
            // Frequent events are left out of the log. With the crate `tracing`, `Builder::tracing`
            // gives each a level.
            if matches!(
                event,
                Event::NodeUp { .. } | Event::NodeDown { .. } | Event::Lost { .. }
            ) {
                eprintln!("{event}");
            }
        });
    let client = client.build()?;

    work(&client);
    nodes.stop(0);
    work(&client);
    println!("{}", metrics.text()?);
    Ok(())
}

/// Four threads and three locks. `try_lock` returns `None` now and then.
fn work(client: &LockClient) {
    let ttl = Duration::from_secs(10);
    thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || {
                for round in 0..100 {
                    let resource = format!("orders:{}", (number + round) % 3);
                    if number == 0 {
                        drop(client.try_lock(&resource, ttl));
                    } else if let Ok(mut lock) = client.lock(&resource, ttl) {
                        thread::sleep(Duration::from_micros(100));
                        drop(lock.extend(ttl));
                        drop(lock.release());
                    }
                }
            });
        }
    });
}
