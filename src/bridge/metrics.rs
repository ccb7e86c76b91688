//! Events as metrics: counters, a gauge, and histograms in seconds, by the names that Prometheus
//! and OpenMetrics expect. Labels have a few known values each, and nodes.

/// A metric whose label has one of these values. With a literal for the value, nothing is
/// allocated for the label.
macro_rules! labelled {
    ($metric:ident, $name:literal, $label:literal, $value:expr, [$($known:literal)*]) => {
        match $value {
            $($known => $metric!($name, $label => $known),)*
            other => $metric!($name, $label => other),
        }
    };
}

use super::words;
use crate::event::Event;
use ::metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram};
use ::metrics::{gauge, histogram};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

/// One metric: its name, its kind, its labels, and what it says.
type Metric = (&'static str, Kind, &'static [&'static str], &'static str);

const METRICS: [Metric; 17] = [
    (
        "redlatch_acquisitions_total",
        Counter,
        &["outcome"],
        "Calls that acquired a lock, or returned without it",
    ),
    ("redlatch_acquisition_wait_seconds", Histogram, &["outcome"], "How long such a call took"),
    (
        "redlatch_attempts_total",
        Counter,
        &["outcome"],
        "Times that the nodes were asked for a lock",
    ),
    (
        "redlatch_attempt_duration_seconds",
        Histogram,
        &[],
        "How long the nodes took to answer an attempt",
    ),
    ("redlatch_queued_total", Counter, &[], "Calls that got a place in the nodes' queue"),
    ("redlatch_woken_total", Counter, &[], "Calls whose turn in the nodes' queue came"),
    (
        "redlatch_quarantine_waits_total",
        Counter,
        &[],
        "Waits for nodes that were started too recently to count",
    ),
    ("redlatch_extensions_total", Counter, &["outcome", "automatic"], "Extensions of locks"),
    ("redlatch_extension_duration_seconds", Histogram, &[], "How long an extension took"),
    ("redlatch_lost_total", Counter, &["reason"], "Locks that were lost while a guard existed"),
    (
        "redlatch_releases_total",
        Counter,
        &["outcome"],
        "Locks that were released, or left to their ttl",
    ),
    (
        "redlatch_hold_duration_seconds",
        Histogram,
        &[],
        "From the request for a lock to its release",
    ),
    ("redlatch_node_up", Gauge, &["node"], "Whether a node is connected"),
    ("redlatch_node_down_total", Counter, &["node"], "Times that a node was lost"),
    ("redlatch_node_slow_total", Counter, &["node"], "Times that a node fell silent"),
    (
        "redlatch_node_queue_limited_total",
        Counter,
        &["node", "support"],
        "Times that a node was found to have no queue, or one without pushes",
    ),
    (
        "redlatch_sessions_lost_total",
        Counter,
        &[],
        "Times that a ZooKeeper ensemble ended the client's session, and all its locks",
    ),
];

fn metrics() -> impl Iterator<Item = &'static Metric> {
    #[cfg(feature = "registers")]
    return METRICS.iter().chain(&register::METRICS);
    #[cfg(not(feature = "registers"))]
    METRICS.iter()
}

pub(crate) fn describe_metrics() {
    for &(name, kind, _, text) in metrics() {
        match kind {
            Counter => describe_counter!(name, text),
            Gauge => describe_gauge!(name, text),
            Histogram => describe_histogram!(name, Unit::Seconds, text),
        }
    }
}

fn acquisition(outcome: &'static str, waited: Duration) {
    labelled!(counter, "redlatch_acquisitions_total", "outcome", outcome, [
        "acquired" "contended" "no_quorum" "too_slow" "same_server" "cancelled" "other"
    ])
    .increment(1);
    labelled!(histogram, "redlatch_acquisition_wait_seconds", "outcome", outcome, [
        "acquired" "contended" "no_quorum" "too_slow" "same_server" "cancelled" "other"
    ])
    .record(waited);
}

fn extension(outcome: &'static str, is_automatic: bool, took: Duration) {
    let automatic = if is_automatic { "true" } else { "false" };
    counter!("redlatch_extensions_total", "outcome" => outcome, "automatic" => automatic)
        .increment(1);
    histogram!("redlatch_extension_duration_seconds").record(took);
}

fn release(outcome: &'static str, held: Duration) {
    labelled!(counter, "redlatch_releases_total", "outcome", outcome, [
        "in_time" "too_late" "unknown" "let_expire"
    ])
    .increment(1);
    histogram!("redlatch_hold_duration_seconds").record(held);
}

pub(crate) fn measure(event: &Event<'_>) {
    match *event {
        Event::Attempt { outcome, took, .. } => {
            labelled!(counter, "redlatch_attempts_total", "outcome", outcome.name(), [
                "granted" "contended" "no_quorum" "too_slow" "same_server"
            ])
            .increment(1);
            histogram!("redlatch_attempt_duration_seconds").record(took);
        }
        Event::Quarantined { .. } => counter!("redlatch_quarantine_waits_total").increment(1),
        Event::Queued { .. } => counter!("redlatch_queued_total").increment(1),
        Event::Woken { .. } => counter!("redlatch_woken_total").increment(1),
        Event::Acquired { waited, .. } => acquisition("acquired", waited),
        Event::Contended { waited, .. } => acquisition("contended", waited),
        Event::Failed { waited, error, .. } => acquisition(words::failed(error), waited),
        Event::Extended { took, is_automatic, .. } => extension("extended", is_automatic, took),
        Event::NotExtended { took, is_automatic, .. } => {
            extension("not_extended", is_automatic, took);
        }
        Event::Lost { reason, .. } => {
            counter!("redlatch_lost_total", "reason" => words::lost(reason)).increment(1);
        }
        Event::Released { held, outcome, .. } => release(words::released(outcome), held),
        Event::LetExpire { held, .. } => release("let_expire", held),
        Event::NodeUp { url } => gauge!("redlatch_node_up", "node" => url.to_owned()).set(1.0),
        Event::NodeDown { url, .. } => {
            gauge!("redlatch_node_up", "node" => url.to_owned()).set(0.0);
            counter!("redlatch_node_down_total", "node" => url.to_owned()).increment(1);
        }
        Event::NodeSlow { url, .. } => {
            counter!("redlatch_node_slow_total", "node" => url.to_owned()).increment(1);
        }
        Event::NodeQueue { url, support } => {
            let (node, support) = (url.to_owned(), support.as_str());
            let name = "redlatch_node_queue_limited_total";
            counter!(name, "node" => node, "support" => support).increment(1);
        }
        Event::SessionLost { .. } => counter!("redlatch_sessions_lost_total").increment(1),
        #[cfg(feature = "registers")]
        Event::Register(ref event) => register::measure(event),
    }
}

#[cfg(feature = "registers")]
mod register {
    //! Those of registers.

    use super::Kind::{Counter, Gauge, Histogram};
    use super::Metric;
    use crate::error::RegisterError;
    use crate::event::RegisterEvent;
    use ::metrics::{counter, gauge, histogram};
    use std::time::Duration;

    pub(super) const METRICS: [Metric; 5] = [
        ("redlatch_node_votes", Gauge, &["node"], "Whether a node has a vote on registers"),
        (
            "redlatch_node_without_vote_total",
            Counter,
            &["node", "reason"],
            "Times that a node was found without a vote on registers",
        ),
        (
            "redlatch_register_calls_total",
            Counter,
            &["outcome"],
            "Calls that read or change registers",
        ),
        (
            "redlatch_register_call_duration_seconds",
            Histogram,
            &["outcome"],
            "How long such a call took",
        ),
        (
            "redlatch_register_rounds_total",
            Counter,
            &["outcome"],
            "Times that the nodes were asked in such calls",
        ),
    ];

    fn call(outcome: &'static str, rounds: Option<u32>, took: Duration) {
        labelled!(counter, "redlatch_register_calls_total", "outcome", outcome, [
            "read" "changed" "no_quorum" "unknown" "no_group" "other"
        ])
        .increment(1);
        labelled!(histogram, "redlatch_register_call_duration_seconds", "outcome", outcome, [
            "read" "changed" "no_quorum" "unknown" "no_group" "other"
        ])
        .record(took);
        if let Some(rounds) = rounds {
            labelled!(counter, "redlatch_register_rounds_total", "outcome", outcome, [
                "read" "changed"
            ])
            .increment(rounds.into());
        }
    }

    /// Why a call that uses a register failed.
    fn not_agreed(error: &RegisterError) -> &'static str {
        match error {
            RegisterError::NoQuorum { .. } => "no_quorum",
            RegisterError::Unknown => "unknown",
            RegisterError::NotFormed | RegisterError::NodesDiffer { .. } => "no_group",
            _ => "other",
        }
    }

    pub(super) fn measure(event: &RegisterEvent<'_>) {
        match *event {
            RegisterEvent::NodeVotes { url } => {
                gauge!("redlatch_node_votes", "node" => url.to_owned()).set(1.0);
            }
            RegisterEvent::NodeWithoutVote { url, why } => {
                gauge!("redlatch_node_votes", "node" => url.to_owned()).set(0.0);
                let (node, name) = (url.to_owned(), "redlatch_node_without_vote_total");
                counter!(name, "node" => node, "reason" => why.name()).increment(1);
            }
            RegisterEvent::Read { rounds, took, .. } => call("read", Some(rounds), took),
            RegisterEvent::Changed { rounds, took, .. } => call("changed", Some(rounds), took),
            RegisterEvent::Failed { took, error, .. } => call(not_agreed(error), None, took),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_events;
    use super::*;
    use metrics_util::MetricKind;
    use metrics_util::debugging::{DebuggingRecorder, Snapshotter};
    use std::collections::{BTreeMap, BTreeSet};

    fn recorded(work: impl FnOnce()) -> Snapshotter {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        ::metrics::with_local_recorder(&recorder, work);
        snapshotter
    }

    #[test]
    fn the_guide_lists_every_metric_as_it_is_described() {
        let row = |(name, kind, labels, text): &Metric| {
            let kind = format!("{kind:?}").to_lowercase();
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{name}` | {kind} | {} | {text} |", labels.join(" "))
        };
        let rows: Vec<_> = metrics().map(row).collect();
        let guide = include_str!("../guide/monitoring.md");
        // The rows of four columns.
        let is_row =
            |line: &&str| line.starts_with("| `redlatch_") && line.matches(" | ").count() >= 3;
        let written: Vec<_> = guide.lines().filter(is_row).collect();
        assert_eq!(written, rows, "\n{}", rows.join("\n"));
    }

    #[test]
    fn all_events_together_have_all_metrics_with_their_labels_and_no_others() {
        let snapshot = recorded(|| test_events::each(measure)).snapshot().into_vec();
        let mut found: BTreeMap<String, (MetricKind, BTreeSet<String>)> = BTreeMap::new();
        for (key, ..) in snapshot {
            let labels = key.key().labels().map(|label| label.key().to_owned()).collect();
            let new = (key.kind(), labels);
            let known = found.entry(key.key().name().to_owned()).or_insert_with(|| new.clone());
            assert_eq!(*known, new, "the same labels each time");
        }
        let expected = metrics().map(|&(name, kind, labels, _)| {
            let kind = match kind {
                Counter => MetricKind::Counter,
                Gauge => MetricKind::Gauge,
                Histogram => MetricKind::Histogram,
            };
            (name.to_owned(), (kind, labels.iter().map(|&label| label.to_owned()).collect()))
        });
        assert_eq!(found, expected.collect());
    }

    #[test]
    fn names_say_the_unit_and_histograms_are_in_seconds() {
        for (name, kind, ..) in metrics() {
            let ending = match kind {
                Counter => "_total",
                Gauge => "",
                Histogram => "_seconds",
            };
            assert!(name.ends_with(ending), "{name}");
        }
    }

    #[test]
    fn descriptions_reach_the_recorder() {
        let snapshotter = recorded(|| {
            describe_metrics();
            test_events::each(measure);
        });
        for (key, unit, text, _) in snapshotter.snapshot().into_vec() {
            let is_seconds = unit == Some(Unit::Seconds);
            assert_eq!(is_seconds, key.kind() == MetricKind::Histogram, "{key:?}");
            assert!(text.is_some(), "{key:?}");
        }
    }
}
