//! The figures of a run that the chart shows, and the file that keeps them: so the chart can be
//! drawn again without another run.

use crate::report::{rate, seconds};
use serde::{Deserialize, Serialize};

/// A group of bars: one row of the table on the page about performance. The first bar is
/// redlatch's, and all lengths are relative to it.
#[derive(Serialize, Deserialize)]
pub struct Group {
    /// The name of the measurement.
    pub title: String,
    pub unit: Unit,
    /// Names and values.
    pub bars: Vec<(String, f64)>,
}

/// What the values of a group are.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub enum Unit {
    /// Locks acquired and released per second.
    Pairs,
    /// Seconds.
    Time,
    /// A share of one.
    Share,
}

impl Unit {
    /// The direction, for the reader of the chart.
    pub fn better(self) -> &'static str {
        match self {
            Self::Pairs => "pairs/s, higher is better",
            Self::Time => "time, lower is better",
            Self::Share => "share, higher is better",
        }
    }

    /// A value as text.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Pairs => rate(value),
            Self::Time => seconds(value),
            Self::Share => format!("{value:.2}"),
        }
    }
}

/// The text of the file: a line of JSON for each group.
pub fn to_text(groups: &[Group]) -> serde_json::Result<String> {
    groups
        .iter()
        .map(|group| Ok(serde_json::to_string(group)? + "\n"))
        .collect()
}

/// Reads what [`to_text`] wrote.
pub fn from_text(text: &str) -> serde_json::Result<Vec<Group>> {
    text.lines().map(serde_json::from_str).collect()
}
