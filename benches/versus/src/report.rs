//! The results: tables in Markdown, and whether the wanted figures were reached.

use crate::figures::Group;
use crate::lane::Lane;
use crate::work::Slice;
use std::fmt::Write;
use std::time::Duration;

/// A table of cells.
pub struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// A figure, and the bound that it must keep.
pub struct Figure {
    pub what: String,
    pub measured: f64,
    pub wanted: Wanted,
}

#[derive(Clone, Copy)]
pub enum Wanted {
    AtLeast(f64),
    AtMost(f64),
}

/// The results of a scenario.
pub struct Findings {
    /// Name and number of nodes, for the heading.
    pub title: String,
    /// A description of the measurement, in a sentence or two.
    pub about: String,
    pub table: Table,
    pub figures: Vec<Figure>,
    /// Its part of the chart, if it has one.
    pub groups: Vec<Group>,
}

impl Table {
    pub fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// The table of most scenarios. Ratios are to the first lane, which is redlatch's.
    pub fn of_lanes(lanes: &[Lane]) -> Self {
        let mut table = Self::new(&[
            "library",
            "pairs/s",
            "of redlatch's",
            "acquire p50",
            "p99",
            "CPU/pair",
            "servers' CPU/pair",
            "connections",
            "peak memory",
        ]);
        for lane in lanes {
            table.row([
                lane.name.clone(),
                rate(lane.median(Slice::rate)),
                format!("{:.2}", lane.times(&lanes[0], Slice::rate)),
                time(lane.quantile(0.5)),
                time(lane.quantile(0.99)),
                seconds(lane.median(Slice::cpu_per_pair)),
                seconds(lane.median(Slice::servers_cpu_per_pair)),
                lane.connections.to_string(),
                memory(lane.peak_memory()),
            ]);
        }
        table
    }

    fn to_markdown(&self) -> String {
        let head: Vec<_> = self.head.iter().map(|&cell| cell.to_owned()).collect();
        let widths: Vec<usize> = (0..head.len())
            .map(|column| {
                let cells = self.rows.iter().chain([&head]).map(|row| row[column].chars().count());
                cells.max().unwrap_or(0)
            })
            .collect();
        let mut text = line(&head, &widths);
        // As wide as the cells and the blanks around them; a colon puts numbers to the right.
        for (column, &width) in widths.iter().enumerate() {
            let dashes = "-".repeat(width + 1);
            text.push('|');
            text.push_str(&dashes);
            text.push(if column == 0 { '-' } else { ':' });
        }
        text.push_str("|\n");
        self.rows.iter().for_each(|row| text.push_str(&line(row, &widths)));
        text
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (index, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        // The names to the left, the numbers to the right.
        let _ = if index == 0 {
            write!(text, "| {cell:<width$} |")
        } else {
            write!(text, " {cell:>width$} |")
        };
    }
    text + "\n"
}

impl Findings {
    pub fn to_markdown(&self) -> String {
        let table = self.table.to_markdown();
        let mut text = format!("### {}\n\n{}\n\n{table}", self.title, self.about);
        if !self.figures.is_empty() {
            text.push('\n');
        }
        for figure in &self.figures {
            let _ = writeln!(text, "- {figure}");
        }
        text
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bound, wanted, is_reached) = match self.wanted {
            Wanted::AtLeast(wanted) => ("at least", wanted, self.measured >= wanted),
            Wanted::AtMost(wanted) => ("at most", wanted, self.measured <= wanted),
        };
        let verdict = if is_reached { "reached" } else { "NOT REACHED" };
        write!(f, "{}: {:.2}, wanted {bound} {wanted}: {verdict}", self.what, self.measured)
    }
}

pub fn rate(pairs_per_second: f64) -> String {
    let digits = if pairs_per_second < 100.0 { 1 } else { 0 };
    let plain = format!("{pairs_per_second:.digits$}");
    let whole = plain.find('.').unwrap_or(plain.len());
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && index < whole && (whole - index) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

pub fn seconds(seconds: f64) -> String {
    time(Duration::from_secs_f64(seconds))
}

pub fn time(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        ..10.0 => format!("{micros:.1} µs"),
        ..1000.0 => format!("{micros:.0} µs"),
        ..10_000.0 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.0} ms", micros / 1e3),
    }
}

pub fn memory(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
