//! The examples of the guide that need other crates: what a test of the library's documentation
//! cannot compile. `tidy` compares them with the pages.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use redlatch::LockClient;
use redlatch::embedded::Nodes;
use std::time::Duration;

// src/guide/recipes.md
async fn charge(client: &LockClient) -> Result<(), Box<dyn std::error::Error>> {
    let lock = client
        .request("orders:42")
        .keep_alive()
        .lock_async()
        .await?;
    tokio::select! {
        billed = bill(42) => billed?, // the lock is extended meanwhile
        lost = lock.lost() => return Err(lost.into()), // the work is dropped where it stands
    }
    lock.release_async().await?; // an error if it was lost before; or drop(lock)
    Ok(())
}

async fn bill(_order: u32) -> Result<(), std::io::Error> {
    Ok(())
}

// src/guide/errors.md
#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[error("the card was declined")]
    Declined,
    #[error("the order is not charged: {0}")]
    Lock(#[from] redlatch::Error),
}

fn charge_once(client: &LockClient) -> Result<(), OrderError> {
    let mut lock = client.lock("orders:42", Duration::from_secs(10))?;
    reserve_the_amount()?; // OrderError
    lock.extend(Duration::from_secs(10))?;
    lock.ensure_held()?;
    take_the_amount()?;
    lock.release()?;
    Ok(())
}

fn charge_under_a_lock(client: &LockClient) -> Result<(), OrderError> {
    client.request("orders:42").with_lock(|lock| {
        reserve_the_amount()?;
        lock.ensure_held()?;
        take_the_amount()?;
        Ok(())
    })
}

/// The same functions with another error.
macro_rules! charges {
    ($module:ident, $result:ty) => {
        mod $module {
            use super::{reserve_the_amount, take_the_amount};
            use redlatch::LockClient;
            use std::time::Duration;

            pub(super) fn charge_once(client: &LockClient) -> $result {
                let mut lock = client.lock("orders:42", Duration::from_secs(10))?;
                reserve_the_amount()?;
                lock.extend(Duration::from_secs(10))?;
                lock.ensure_held()?;
                take_the_amount()?;
                lock.release()?;
                Ok(())
            }

            pub(super) fn charge_under_a_lock(client: &LockClient) -> $result {
                client.request("orders:42").with_lock(|lock| {
                    reserve_the_amount()?;
                    lock.ensure_held()?;
                    take_the_amount()?;
                    Ok(())
                })
            }
        }
    };
}

charges!(with_anyhow, anyhow::Result<()>);
charges!(boxed, Result<(), Box<dyn std::error::Error>>);
charges!(sendable, Result<(), Box<dyn std::error::Error + Send + Sync>>);

fn reserve_the_amount() -> Result<(), OrderError> {
    Ok(())
}

fn take_the_amount() -> Result<(), OrderError> {
    Err(OrderError::Declined)
}

// src/guide/monitoring.md
/// In seconds: from a round within a rack to a ttl.
const BUCKETS: [f64; 11] = [
    0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0, 60.0,
];

fn install() -> Result<PrometheusHandle, BuildError> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
        .install_recorder()
}

#[test]
fn a_task_of_tokio_runs_work_under_a_lock() {
    let nodes = Nodes::start(3).expect("ports are free");
    let client = LockClient::new(nodes.urls()).expect("the URLs are good");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime starts");
    runtime.block_on(charge(&client)).expect("the lock is free");
    let free = client.try_lock("orders:42", Duration::from_secs(5));
    assert!(free.expect("the nodes answer").is_some(), "it is released");
}

/// A client for a busy machine.
fn patient(nodes: &Nodes) -> LockClient {
    let client = LockClient::builder()
        .nodes(nodes.urls())
        .node_timeout(Duration::from_secs(2));
    client.build().expect("the settings are good")
}

#[test]
fn an_application_returns_errors_of_its_own_from_under_a_lock() {
    let nodes = Nodes::start(3).expect("ports are free");
    let client = patient(&nodes);
    for charged in [charge_once, charge_under_a_lock] {
        assert!(matches!(charged(&client), Err(OrderError::Declined)));
    }
    let declined = "the card was declined";
    for charged in [with_anyhow::charge_once, with_anyhow::charge_under_a_lock] {
        assert_eq!(charged(&client).unwrap_err().to_string(), declined);
    }
    for charged in [boxed::charge_once, boxed::charge_under_a_lock] {
        assert_eq!(charged(&client).unwrap_err().to_string(), declined);
    }
    for charged in [sendable::charge_once, sendable::charge_under_a_lock] {
        assert_eq!(charged(&client).unwrap_err().to_string(), declined);
    }
    let refused = client
        .lock("", Duration::from_secs(10))
        .map_err(OrderError::from)
        .unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("the order is not charged: "),
        "{refused}"
    );
}

#[test]
fn no_type_has_to_be_named_where_the_body_fails_only_as_locks_do() -> anyhow::Result<()> {
    let nodes = Nodes::start(3)?;
    let client = patient(&nodes);
    let one = client.with_lock("a", Duration::from_secs(10), |_| Ok(1))?;
    assert_eq!(one, 1);
    Ok(())
}

#[test]
fn prometheus_gets_histograms_with_the_buckets_of_the_guide() {
    let prometheus = install().expect("there is no other recorder");
    let nodes = Nodes::start(3).expect("ports are free");
    let client = LockClient::builder()
        .nodes(nodes.urls())
        .metrics()
        .build()
        .expect("good URLs");
    drop(
        client
            .lock("orders:42", Duration::from_secs(10))
            .expect("the lock is free"),
    );
    let shown = prometheus.render();
    let bucket = |le| {
        let start = format!("redlatch_hold_duration_seconds_bucket{{le=\"{le}\"}}");
        shown.lines().any(|line| line.starts_with(&start))
    };
    assert!(BUCKETS.iter().all(bucket), "{shown}");
}
