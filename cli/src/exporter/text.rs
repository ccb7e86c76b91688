//! The page of metrics. All of them are gauges, so the text is in Prometheus' own format and in
//! that of OpenMetrics at the same time.

use super::collector::{LockSnapshot, Snapshot};
use crate::inspect::shown;
use crate::top::search::Row;
use crate::{doctor, ensemble};
use prometheus_client::encoding::text;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use redlatch::status::ClockDifference;
use redlatch::{LockState, NodeStatus};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, UNIX_EPOCH};

/// Names of labels, and their values.
type Labels = Vec<(&'static str, String)>;

/// A name, a help, and the value of a node. `None` if it is not known.
type OfNode = (&'static str, &'static str, fn(&NodeStatus) -> Option<f64>);

type OfLock = (&'static str, &'static str, fn(&Row) -> Option<f64>);

const OF_NODES: [OfNode; 10] = [
    (
        "redlatch_node_up",
        "Whether the node is connected",
        |node| flag(node.is_connected),
    ),
    (
        "redlatch_node_quarantine_seconds",
        "For how long its grants do not count yet, since it was started lately",
        |node| {
            node.is_connected
                .then(|| node.quarantine.map_or(0.0, |it| it.as_secs_f64()))
        },
    ),
    (
        "redlatch_node_uptime_seconds",
        "How long the server has been running",
        |node| seconds(node.uptime),
    ),
    (
        "redlatch_node_round_trip_seconds",
        "How long its last answer took",
        |node| seconds(node.round_trip),
    ),
    (
        "redlatch_node_reign_age_seconds",
        "For how long the reign of a replicated group is known, unless it was adopted or proven; 0 \
         until a majority has acknowledged a vote of it",
        |node| {
            let group = node
                .group
                .as_ref()
                .filter(|group| !group.is_adopted && !group.is_proven)?;
            Some(group.age.unwrap_or_default().as_secs_f64())
        },
    ),
    (
        "redlatch_node_memory_used_bytes",
        "How much memory the server uses",
        |node| node.memory.used.map(|it| it as f64),
    ),
    (
        "redlatch_node_memory_max_bytes",
        "How much memory the server may use, if there is a limit",
        |node| node.memory.max.filter(|it| *it > 0).map(|it| it as f64),
    ),
    (
        "redlatch_node_clock_offset_seconds",
        "By how much its wall clock is ahead of that of the exporter's machine",
        |node| node.clock.map(offset),
    ),
    (
        "redlatch_node_clock_error_seconds",
        "By how much the offset may be wrong: half the time that the answer took",
        |node| node.clock.map(|clock| clock.error.as_secs_f64()),
    ),
    (
        "redlatch_node_warnings",
        "How many things about the node break a promise in a fault that is to be expected",
        |node| node.is_connected.then(|| node.warnings().len() as f64),
    ),
];

const OF_LOCKS: [OfLock; 6] = [
    (
        "redlatch_lock_held",
        "Whether somebody holds the lock",
        |row| {
            flag(matches!(
                row.seen.state,
                LockState::Held(_) | LockState::Shared(_)
            ))
        },
    ),
    (
        "redlatch_lock_holders",
        "How many hold the lock, or a share of it",
        |row| Some(row.seen.holder_count as f64),
    ),
    (
        "redlatch_lock_holder_age_seconds",
        "For how long the exporter has seen its holder hold it; on ZooKeeper, since it came",
        |row| seconds(row.age),
    ),
    (
        "redlatch_lock_remaining_seconds",
        "How long until nobody holds the lock, if nobody extends it",
        |row| seconds(row.remaining()),
    ),
    (
        "redlatch_lock_waiters",
        "How many wait for the lock",
        |row| Some(row.seen.waiter_count as f64),
    ),
    (
        "redlatch_lock_longest_wait_seconds",
        "For how long the one has waited for the lock that has waited longest",
        |row| Some(row.longest_wait().unwrap_or_default().as_secs_f64()),
    ),
];

/// The page.
pub(super) fn page(seen: &Snapshot) -> String {
    let mut page = Page::default();
    page.add_nodes(&seen.nodes);
    if seen.has_patterns {
        let help = "Whether enough nodes have answered the last time that locks were looked at";
        page.one(
            "redlatch_locks_known",
            help,
            f64::from(u8::from(seen.locks.is_some())),
        );
    }
    if let Some(locks) = &seen.locks {
        page.add_locks(locks);
    }
    let help = "How long the exporter took to look at the nodes and locks";
    page.one(
        "redlatch_exporter_collect_duration_seconds",
        help,
        seen.took.as_secs_f64(),
    );
    let at = seen.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let help = "When the exporter began to look at the nodes and locks, in seconds since 1970";
    page.one(
        "redlatch_exporter_collect_timestamp_seconds",
        help,
        at.as_secs_f64(),
    );
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    page.add(
        "redlatch_exporter_build_info",
        "The exporter's version",
        [(version, 1.0)],
    );
    page.end()
}

fn flag(is: bool) -> Option<f64> {
    Some(f64::from(u8::from(is)))
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|it| it.as_secs_f64())
}

/// Below zero if the node's clock is behind.
fn offset(clock: ClockDifference) -> f64 {
    let by = clock.by.as_secs_f64();
    if clock.is_ahead { by } else { -by }
}

fn label(node: &NodeStatus) -> (&'static str, String) {
    ("node", node.url.to_string())
}

#[derive(Default)]
struct Page {
    registry: Registry,
}

impl Page {
    fn add_nodes(&mut self, nodes: &[NodeStatus]) {
        for (name, help, value) in OF_NODES {
            let samples = nodes
                .iter()
                .filter_map(|node| Some((vec![label(node)], value(node)?)));
            self.add(name, help, samples);
        }
        let warnings = nodes.iter().flat_map(|node| {
            let of_node = node.warnings().iter();
            of_node.map(move |it| (vec![label(node), ("warning", it.as_str().to_owned())], 1.0))
        });
        self.add(
            "redlatch_node_warning",
            "Such a thing, by its kind",
            warnings,
        );
        if doctor::keep_registers(nodes) {
            let votes = nodes.iter().filter_map(|node| {
                let vote = node.registers?;
                Some((vec![label(node)], flag(vote.is_member())?))
            });
            self.add(
                "redlatch_node_votes",
                "Whether the node has a vote on registers",
                votes,
            );
        }
        let needed = ensemble::needed(nodes);
        self.one(
            "redlatch_nodes_needed",
            "How many nodes a lock needs",
            needed as f64,
        );
    }

    fn add_locks(&mut self, locks: &LockSnapshot) {
        for (name, help, value) in OF_LOCKS {
            let samples = locks.rows.iter().filter_map(|row| {
                let label = ("lock", shown(row.lock.as_ref()));
                Some((vec![label], value(row)?))
            });
            self.add(name, help, samples);
        }
        let help = "Names that match, and of which there are no metrics, since there are too many \
                    or they are too long";
        self.one("redlatch_locks_left_out", help, locks.left_out as f64);
    }

    fn one(&mut self, name: &str, help: &str, value: f64) {
        self.add(name, help, [(Vec::new(), value)]);
    }

    fn add(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels, f64)>) {
        let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        for (labels, value) in samples {
            family.get_or_create(&labels).set(value);
        }
        self.registry.register(name, help, family);
    }

    fn end(&self) -> String {
        let mut text = String::new();
        // A String takes everything.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
