//! The examples of the guide that need other crates: what a test of the library's documentation
//! cannot compile. `tidy` compares them with the pages.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use redlatch::LockClient;
use redlatch::embedded::Nodes;
use std::time::Duration;

// src/guide/recipes.md
/// Any error: that of the work, and that of a lock that was lost or not acquired.
type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn charge(client: &LockClient) -> Result<String, Failure> {
    let client = client.clone();
    let receipt = tokio::task::spawn_blocking(move || {
        client.with_lock("orders:42", Duration::from_secs(10), |_lock| {
            Ok::<_, Failure>("charged".to_owned())
        })
    });
    receipt.await? // the `?` is for a closure that panicked
}

// src/guide/monitoring.md
/// In seconds: from a round within a rack to a ttl.
const BUCKETS: [f64; 11] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0, 60.0];

fn install() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
        .install_recorder()
}

#[test]
fn a_task_of_tokio_runs_work_under_a_lock() {
    let nodes = Nodes::start(3).expect("ports are free");
    let client = LockClient::new(nodes.urls()).expect("the URLs are good");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    assert_eq!(runtime.block_on(charge(&client)).expect("the lock is free"), "charged");
}

#[test]
fn prometheus_gets_histograms_with_the_buckets_of_the_guide() {
    let prometheus = install().expect("there is no other recorder");
    let nodes = Nodes::start(3).expect("ports are free");
    let client = LockClient::builder().nodes(nodes.urls()).metrics().build().expect("good URLs");
    drop(client.lock("orders:42", Duration::from_secs(10)).expect("the lock is free"));
    let shown = prometheus.render();
    let bucket = |le| {
        let start = format!("redlatch_hold_duration_seconds_bucket{{le=\"{le}\"}}");
        shown.lines().any(|line| line.starts_with(&start))
    };
    assert!(BUCKETS.iter().all(bucket), "{shown}");
}
