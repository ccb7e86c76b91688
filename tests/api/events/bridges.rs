//! Events as `tracing` logs and as `metrics`, beside a callback.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use redlatch::{Builder, LockClient};
use support::journal::{Journal, names};
use support::locks::{LONG, take, with_long_timeout};
use support::secret::SECRET;
use support::servers::Servers;

/// What a subscriber writes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no writer panics").clone()).expect("it is text")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Does the work, and returns what a subscriber with this level wrote meanwhile.
fn logged(level: tracing::Level, work: impl FnOnce()) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false);
    let subscriber = subscriber
        .without_time()
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    log.text()
}

/// Acquires a lock and releases it, finds it held, and fails on a majority that is down.
fn use_client(mut servers: Servers, builder: Builder) -> LockClient {
    let client = builder.build().expect("the settings are good");
    let guard = take(&client, "orders:42", LONG);
    assert!(
        client
            .try_lock("orders:42", LONG)
            .expect("a majority answers")
            .is_none()
    );
    guard.release().expect("a majority answers");
    drop(take(&client, "dropped", LONG));
    servers[..2]
        .iter_mut()
        .for_each(support::redis::Server::kill);
    client
        .try_lock("orders:42", LONG)
        .expect_err("a majority is down");
    client
}

fn servers() -> (Servers, Builder) {
    let servers = Servers::start_with(3, &["--requirepass", SECRET]);
    let with_password =
        |server: &support::redis::Server| format!("redis://:{SECRET}@127.0.0.1:{}", server.port());
    let urls: Vec<_> = servers.iter().map(with_password).collect();
    let builder = with_long_timeout(urls).wait_for_all(true);
    (servers, builder)
}

#[test]
fn a_subscriber_gets_every_event_of_a_call_in_its_span_and_so_does_the_callback() {
    let (servers, builder) = servers();
    let journal = Journal::default();
    let builder = builder.on_event(journal.recorder()).tracing();
    let text = logged(tracing::Level::TRACE, || {
        let span = tracing::info_span!("job", number = 7);
        span.in_scope(|| use_client(servers, builder));
    });
    let lines: Vec<_> = text.lines().collect();
    for begin in [
        "TRACE job{number=7}: redlatch::lock: attempt resource=orders:42 number=1 outcome=\"gr",
        "DEBUG job{number=7}: redlatch::lock: acquired resource=orders:42 attempts=1 waited=",
        "DEBUG job{number=7}: redlatch::lock: contended resource=orders:42 attempts=1 waited=",
        "DEBUG job{number=7}: redlatch::lock: released resource=orders:42 held=",
        " INFO job{number=7}: redlatch::node: up node=\"redis://127.0.0.1:",
        " WARN job{number=7}: redlatch::node: down node=\"redis://127.0.0.1:",
        " WARN job{number=7}: redlatch::lock: failed resource=orders:42 attempts=1 waited=",
    ] {
        assert!(
            lines.iter().any(|line| line.starts_with(begin)),
            "no {begin} in:\n{text}"
        );
    }
    assert!(!text.contains(SECRET), "{text}");
    let entries = journal.entries();
    assert_eq!(entries.len(), lines.len(), "{:?}\n{text}", names(&entries));
}

#[test]
fn a_subscriber_for_warnings_hears_of_failures_only() {
    let (servers, builder) = servers();
    let text = logged(tracing::Level::WARN, || {
        drop(use_client(servers, builder.tracing()));
    });
    assert!(
        text.lines().all(|line| line.starts_with(" WARN ")),
        "{text}"
    );
    assert_eq!(text.matches("redlatch::node: down").count(), 2, "{text}");
    assert_eq!(text.matches("redlatch::lock: failed").count(), 1, "{text}");
}

/// The value of this metric with these labels: a count, or how many values a histogram has.
fn value(snapshotter: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<u64> {
    let is_it = |sample: &&Sample| {
        sample.name == name
            && labels.iter().all(|(key, value)| {
                sample
                    .labels
                    .iter()
                    .any(|(other, its)| other == key && its.contains(value))
            })
    };
    snapshotter.iter().find(is_it).map(|sample| sample.value)
}

struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: u64,
}

fn samples(snapshotter: &Snapshotter) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (key, unit, _, value) in snapshotter.snapshot().into_vec() {
        let is_histogram = key.kind() == MetricKind::Histogram;
        assert_eq!(
            unit == Some(metrics::Unit::Seconds),
            is_histogram,
            "{key:?}"
        );
        let value = match value {
            DebugValue::Counter(count) => count,
            DebugValue::Gauge(level) => level.into_inner() as u64,
            DebugValue::Histogram(values) => {
                assert!(
                    values.iter().all(|seconds| seconds.into_inner() < 50.0),
                    "{values:?}"
                );
                values.len() as u64
            }
        };
        let labels = key.key().labels();
        let labels = labels.map(|label| (label.key().to_owned(), label.value().to_owned()));
        let name = key.key().name().to_owned();
        let labels = labels.collect();
        samples.push(Sample {
            name,
            labels,
            value,
        });
    }
    samples
}

#[test]
fn a_recorder_counts_and_measures_what_calls_did() {
    let (servers, builder) = servers();
    let down = servers[0].port().to_string();
    let up = servers[2].port().to_string();
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || drop(use_client(servers, builder.metrics())));
    let samples = samples(&snapshotter);
    let value = |name: &str, labels: &[(&str, &str)]| value(&samples, name, labels);
    for outcome in ["acquired", "contended", "no_quorum"] {
        let expected = if outcome == "acquired" { 2 } else { 1 };
        let labels = [("outcome", outcome)];
        assert_eq!(
            value("redlatch_acquisitions_total", &labels),
            Some(expected),
            "{outcome}"
        );
        assert_eq!(
            value("redlatch_acquisition_wait_seconds", &labels),
            Some(expected)
        );
    }
    assert_eq!(
        value("redlatch_attempts_total", &[("outcome", "granted")]),
        Some(2)
    );
    assert_eq!(value("redlatch_attempt_duration_seconds", &[]), Some(4));
    assert_eq!(
        value("redlatch_releases_total", &[("outcome", "in_time")]),
        Some(1)
    );
    assert_eq!(
        value("redlatch_releases_total", &[("outcome", "unknown")]),
        Some(1)
    );
    assert_eq!(value("redlatch_hold_duration_seconds", &[]), Some(2));
    assert_eq!(value("redlatch_node_up", &[("node", &up)]), Some(1));
    assert_eq!(value("redlatch_node_up", &[("node", &down)]), Some(0));
    assert_eq!(
        value("redlatch_node_down_total", &[("node", &down)]),
        Some(1)
    );
    let mut labels = samples.iter().flat_map(|sample| &sample.labels);
    assert!(!labels.any(|(_, value)| value.contains("orders") || value.contains(SECRET)));
}
