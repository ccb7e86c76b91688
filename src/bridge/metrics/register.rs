//! The metrics of registers.

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
    ("redlatch_register_calls_total", Counter, &["outcome"], "Calls that read or change registers"),
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

/// A call that reads or changes a register.
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
