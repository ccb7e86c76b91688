//! The metrics of registers.

use super::{Counter, Gauge, Histogram, Metric, Sum};
use crate::error::RegisterError;

const CALLS: &[&str] = &["register_read", "register_changed", "register_failed"];

#[rustfmt::skip] // A row for each.
pub(super) const METRICS: &[Metric] = &[
    ("redlatch_node_votes", Gauge, &["node_votes", "node_without_vote"], &["node"],
        "Whether a node has a vote on registers"),
    ("redlatch_node_without_vote_total", Counter, &["node_without_vote"], &["node", "reason"],
        "Times that a node was found without a vote on registers"),
    ("redlatch_register_calls_total", Counter, CALLS, &["outcome"],
        "Calls that read or change registers"),
    ("redlatch_register_call_duration_seconds", Histogram("took"), CALLS, &["outcome"],
        "How long such a call took"),
    ("redlatch_register_rounds_total", Sum("rounds"), &["register_read", "register_changed"],
        &["outcome"], "Times that the nodes were asked in such calls"),
];

/// Why a call failed. The rarer reasons are one word.
pub(super) fn failure(error: &RegisterError) -> &'static str {
    match error {
        RegisterError::NoQuorum { .. } => "no_quorum",
        RegisterError::Unknown => "unknown",
        RegisterError::NotFormed | RegisterError::NodesDiffer { .. } => "no_group",
        _ => "other",
    }
}
