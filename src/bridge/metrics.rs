//! Events as metrics: counters, a gauge, and histograms in seconds, by the names that Prometheus
//! and OpenMetrics expect. Labels have a few known values each, and nodes.

#[cfg(feature = "registers")]
mod registers;

use super::field;
use crate::error::Error;
use crate::event::{Event, FieldValue};
use ::metrics::{Key, Label, Level, Metadata, SharedString, Unit, with_recorder};
use ::metrics::{describe_counter, describe_gauge, describe_histogram};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Counts events.
    Counter,
    /// Adds up the field with this name.
    #[allow(dead_code, reason = "only rounds of registers are added up")]
    Sum(&'static str),
    /// 1 after an event of the first name, and 0 after one of the second.
    Gauge,
    /// Of the field with this name.
    Histogram(&'static str),
}

use Kind::{Counter, Gauge, Histogram, Sum};

/// One metric: its name, its kind, the events that change it, its labels, and what it says.
type Metric = (
    &'static str,
    Kind,
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

const ACQUISITIONS: &[&str] = &["acquired", "contended", "failed"];
const EXTENSIONS: &[&str] = &["extended", "not_extended"];
const RELEASES: &[&str] = &["released", "let_expire"];

/// All metrics.
const TABLES: &[&[Metric]] = &[
    METRICS,
    #[cfg(feature = "registers")]
    registers::METRICS,
];

/// Those of locks and nodes.
#[rustfmt::skip] // A row for each.
const METRICS: &[Metric] = &[
    ("redlatch_acquisitions_total", Counter, ACQUISITIONS, &["outcome"],
        "Calls that acquired a lock, or returned without it"),
    ("redlatch_acquisition_wait_seconds", Histogram("waited"), ACQUISITIONS, &["outcome"],
        "How long such a call took"),
    ("redlatch_attempts_total", Counter, &["attempt"], &["outcome"],
        "Times that the nodes were asked for a lock"),
    ("redlatch_attempt_duration_seconds", Histogram("took"), &["attempt"], &[],
        "How long the nodes took to answer an attempt"),
    ("redlatch_waits_for_itself_total", Counter, &["held_by_this_thread"], &[],
        "Waits for a lock that the thread had taken itself"),
    ("redlatch_queued_total", Counter, &["queued"], &[],
        "Calls that got a place in the nodes' queue"),
    ("redlatch_woken_total", Counter, &["woken"], &[],
        "Calls whose turn in the nodes' queue came"),
    ("redlatch_quarantine_waits_total", Counter, &["quarantined"], &[],
        "Waits for nodes that were started, or had another master, too recently to count"),
    ("redlatch_other_data_total", Counter, &["not_a_lock"], &["reason"],
        "Names of locks under which other data was found"),
    ("redlatch_extensions_total", Counter, EXTENSIONS, &["outcome", "automatic"],
        "Extensions of locks"),
    ("redlatch_extension_duration_seconds", Histogram("took"), EXTENSIONS, &[],
        "How long an extension took"),
    ("redlatch_lost_total", Counter, &["lost"], &["reason"],
        "Locks that were lost while a guard existed"),
    ("redlatch_releases_total", Counter, RELEASES, &["outcome"],
        "Locks that were released, or left to their ttl"),
    ("redlatch_hold_duration_seconds", Histogram("held"), RELEASES, &[],
        "From the request for a lock to its release"),
    ("redlatch_node_up", Gauge, &["node_up", "node_down"], &["node"],
        "Whether a node is connected"),
    ("redlatch_node_down_total", Counter, &["node_down"], &["node"],
        "Times that a node was lost"),
    ("redlatch_node_slow_total", Counter, &["node_slow"], &["node"],
        "Times that a node fell silent"),
    ("redlatch_node_queue_limited_total", Counter, &["node_queue"], &["node", "support"],
        "Times that a node was found to have no queue, or one without pushes"),
    ("redlatch_node_reigns_total", Counter, &["new_reign"], &["node"],
        "Times that a replicated group had another master than before, or one that was restarted"),
    ("redlatch_sessions_lost_total", Counter, &["session_lost"], &[],
        "Times that a ZooKeeper ensemble ended the client's session, and all its locks"),
];

pub(crate) fn describe_metrics() {
    for &(name, kind, _, _, text) in TABLES.iter().copied().flatten() {
        match kind {
            Counter | Sum(_) => describe_counter!(name, text),
            Gauge => describe_gauge!(name, text),
            Histogram(_) => describe_histogram!(name, Unit::Seconds, text),
        }
    }
}

pub(crate) fn measure(event: &Event<'_>) {
    let event_name = event.name();
    for &(name, kind, events, labels, _) in TABLES.iter().copied().flatten() {
        let Some(place) = events.iter().position(|it| *it == event_name) else {
            continue;
        };
        let key = key(event, name, labels);
        with_recorder(|recorder| match kind {
            Counter => recorder.register_counter(&key, &METADATA).increment(1),
            Gauge => {
                let is_first = if place == 0 { 1.0 } else { 0.0 };
                recorder.register_gauge(&key, &METADATA).set(is_first);
            }
            Sum(of) => {
                if let Some(FieldValue::Number(number)) = field(event, of) {
                    recorder.register_counter(&key, &METADATA).increment(number);
                }
            }
            Histogram(of) => {
                if let Some(FieldValue::Time(time)) = field(event, of) {
                    recorder.register_histogram(&key, &METADATA).record(time);
                }
            }
        });
    }
}

const METADATA: Metadata<'_> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The metric with the labels of this event. Without a recorder, pairs of lock and release cost no
/// allocation: the words of their outcomes are constant labels.
fn key(event: &Event<'_>, name: &'static str, labels: &'static [&'static str]) -> Key {
    macro_rules! constant {
        ($value:expr, [$($word:literal)+]) => {
            match $value {
                $($word => {
                    static LABEL: [Label; 1] = [Label::from_static_parts("outcome", $word)];
                    return Key::from_static_labels(name, &LABEL);
                })+
                _ => {}
            }
        };
    }
    match labels {
        [] => return Key::from_static_name(name),
        [label @ "outcome"] => constant!(&*label_value(event, label), [
            "acquired" "contended" "granted" "in_time" "too_late" "unknown" "let_expire"
            "no_quorum" "too_slow" "same_server" "cancelled" "other" "read" "changed"
        ]),
        _ => {}
    }
    let labels: Vec<Label> = labels
        .iter()
        .map(|label| Label::new(*label, label_value(event, label)))
        .collect();
    Key::from_parts(name, labels)
}

/// The field of this name as a label. Without one, the outcome of a call is its error, or else the
/// event: `acquired`, or `read` of `register_read`.
fn label_value(event: &Event<'_>, label: &str) -> SharedString {
    match (field(event, label), event) {
        (Some(FieldValue::Flag(true)), _) => "true".into(),
        (Some(FieldValue::Word(word) | FieldValue::Reason(word, _)), _) => word.into(),
        (Some(_), _) => "false".into(),
        (None, _) if label == "node" => event.url().unwrap_or_default().to_owned().into(),
        (None, Event::Failed { error, .. }) => failure(error).into(),
        #[cfg(feature = "registers")]
        (None, Event::RegisterFailed { error, .. }) => registers::failure(error).into(),
        (None, _) => event.name().trim_start_matches("register_").into(),
    }
}

/// Why a call failed. The rarer reasons are one word.
fn failure(error: &Error) -> &'static str {
    match error {
        Error::NoQuorum(_) => "no_quorum",
        Error::TooSlow { .. } => "too_slow",
        Error::SameServer { .. } => "same_server",
        Error::Cancelled => "cancelled",
        Error::Lost(_) => "lost",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_events;
    use super::*;
    use ::metrics::{
        Counter as CounterHandle, Gauge as GaugeHandle, Histogram as HistogramHandle, KeyName,
        Recorder,
    };
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Mutex;

    /// The kind of a metric, as a recorder knows it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Recorded {
        Counter,
        Gauge,
        Histogram,
    }

    /// What a recorder was told: the metrics that were written, in their order, and the
    /// descriptions.
    #[derive(Default)]
    struct Journal {
        written: Mutex<Vec<(Recorded, Key)>>,
        described: Mutex<BTreeMap<String, (Recorded, Option<Unit>)>>,
    }

    impl Journal {
        fn of(work: impl FnOnce()) -> Self {
            let journal = Self::default();
            ::metrics::with_local_recorder(&journal, work);
            journal
        }

        fn describe(&self, kind: Recorded, name: &KeyName, unit: Option<Unit>, text: &str) {
            assert!(!text.is_empty(), "{name:?}");
            let mut described = self.described.lock().expect("no test panics with it");
            described.insert(name.as_str().to_owned(), (kind, unit));
        }

        fn write(&self, kind: Recorded, key: &Key) {
            self.written
                .lock()
                .expect("no test panics with it")
                .push((kind, key.clone()));
        }
    }

    impl Recorder for Journal {
        fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
            self.describe(Recorded::Counter, &name, unit, &text);
        }

        fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
            self.describe(Recorded::Gauge, &name, unit, &text);
        }

        fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
            self.describe(Recorded::Histogram, &name, unit, &text);
        }

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> CounterHandle {
            self.write(Recorded::Counter, key);
            CounterHandle::noop()
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> GaugeHandle {
            self.write(Recorded::Gauge, key);
            GaugeHandle::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> HistogramHandle {
            self.write(Recorded::Histogram, key);
            HistogramHandle::noop()
        }
    }

    #[test]
    fn the_guide_lists_every_metric_as_it_is_described() {
        let row = |(name, kind, _, labels, text): &Metric| {
            let kind = match kind {
                Counter | Sum(_) => "counter",
                Gauge => "gauge",
                Histogram(_) => "histogram",
            };
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            format!("| `{name}` | {kind} | {} | {text} |", labels.join(" "))
        };
        let rows: Vec<_> = TABLES.iter().copied().flatten().map(row).collect();
        let guide = include_str!("../guide/monitoring.md");
        // The rows of four columns.
        let is_row =
            |line: &&str| line.starts_with("| `redlatch_") && line.matches(" | ").count() >= 3;
        let written: Vec<_> = guide.lines().filter(is_row).collect();
        assert_eq!(written, rows, "\n{}", rows.join("\n"));
    }

    #[test]
    fn all_events_together_have_all_metrics_with_their_labels_and_no_others() {
        let journal = Journal::of(|| test_events::each(measure));
        let mut found: BTreeMap<String, (Recorded, BTreeSet<String>)> = BTreeMap::new();
        for (kind, key) in journal
            .written
            .into_inner()
            .expect("no test panics with it")
        {
            let labels = key.labels().map(|label| label.key().to_owned()).collect();
            let new = (kind, labels);
            let known = found
                .entry(key.name().to_owned())
                .or_insert_with(|| new.clone());
            assert_eq!(*known, new, "the same labels each time");
        }
        let expected = TABLES
            .iter()
            .copied()
            .flatten()
            .map(|&(name, kind, _, labels, _)| {
                let kind = match kind {
                    Counter | Sum(_) => Recorded::Counter,
                    Gauge => Recorded::Gauge,
                    Histogram(_) => Recorded::Histogram,
                };
                (
                    name.to_owned(),
                    (kind, labels.iter().map(|&label| label.to_owned()).collect()),
                )
            });
        assert_eq!(found, expected.collect());
    }

    #[test]
    fn names_say_the_unit_and_histograms_are_in_seconds() {
        for (name, kind, ..) in TABLES.iter().copied().flatten() {
            let ending = match kind {
                Counter | Sum(_) => "_total",
                Gauge => "",
                Histogram(_) => "_seconds",
            };
            assert!(name.ends_with(ending), "{name}");
        }
    }

    #[test]
    fn descriptions_reach_the_recorder() {
        let journal = Journal::of(|| {
            describe_metrics();
            test_events::each(measure);
        });
        let described = journal
            .described
            .into_inner()
            .expect("no test panics with it");
        for (kind, key) in journal
            .written
            .into_inner()
            .expect("no test panics with it")
        {
            let unit = (kind == Recorded::Histogram).then_some(Unit::Seconds);
            assert_eq!(described.get(key.name()), Some(&(kind, unit)), "{key:?}");
        }
    }
}
