//! The figures of a run that the chart shows, and the file that keeps them: so the chart can be
//! drawn again without another run.

use crate::report::{rate, seconds};
use std::fmt::Write;

/// A group of bars: one row of the table on the page about performance. The first bar is
/// redlatch's, and all lengths are relative to it.
#[derive(Debug, PartialEq)]
pub struct Group {
    /// The name of the measurement.
    pub title: String,
    pub unit: Unit,
    /// Names and values.
    pub bars: Vec<(String, f64)>,
}

/// What the values of a group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Locks acquired and released per second.
    Pairs,
    /// Seconds.
    Time,
    /// A share of one.
    Share,
}

/// The name of each in the file, and the direction, for the reader of the chart.
const UNITS: [(Unit, &str, &str); 3] = [
    (Unit::Pairs, "pairs/s", "pairs/s, higher is better"),
    (Unit::Time, "seconds", "time, lower is better"),
    (Unit::Share, "share", "share, higher is better"),
];

impl Unit {
    fn word(self) -> &'static str {
        UNITS[self as usize].1
    }

    pub fn better(self) -> &'static str {
        UNITS[self as usize].2
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

/// One line per bar: title, unit, name and value, with tabs between them.
pub fn to_text(groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups {
        for (name, value) in &group.bars {
            let _ = writeln!(text, "{}\t{}\t{name}\t{value}", group.title, group.unit.word());
        }
    }
    text
}

/// Reads what [`to_text`] wrote.
pub fn from_text(text: &str) -> Result<Vec<Group>, String> {
    let mut groups: Vec<Group> = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [title, unit, name, value] = cells[..] else {
            return Err(format!("not four cells: {line}"));
        };
        let unit = UNITS.into_iter().find(|(_, word, _)| *word == unit);
        let (unit, ..) = unit.ok_or_else(|| format!("not a known unit: {line}"))?;
        let value = value.parse().map_err(|_| format!("not a number: {line}"))?;
        if groups.last().is_none_or(|group| group.title != title) {
            groups.push(Group { title: title.to_owned(), unit, bars: Vec::new() });
        }
        if let Some(group) = groups.last_mut() {
            group.bars.push((name.to_owned(), value));
        }
    }
    Ok(groups)
}
