//! The results: tables in Markdown.

use std::time::Duration;

/// A table of cells.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|&cell| cell.to_owned()).collect()])
    }

    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.0.push(cells.into());
    }

    /// Prints it, below a heading and a description of the measurement.
    pub fn print(&self, title: &str, about: &str) {
        println!("### {title}\n\n{about}\n");
        let width = |column: usize| self.0.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<_> = (0..self.0[0].len())
            .map(|column| width(column).unwrap_or(0))
            .collect();
        // As wide as the cells and the blanks around them. A colon puts numbers to the right.
        let dashes = widths[1..]
            .iter()
            .map(|width| format!("-{}:|", "-".repeat(*width)));
        let dashes = format!(
            "|-{}-|{}",
            "-".repeat(widths[0]),
            dashes.collect::<String>()
        );
        for (index, row) in self.0.iter().enumerate() {
            let numbers = row.iter().zip(&widths).skip(1);
            let numbers: String = numbers
                .map(|(cell, &width)| format!(" {cell:>width$} |"))
                .collect();
            println!("| {:<width$} |{numbers}", row[0], width = widths[0]);
            if index == 0 {
                println!("{dashes}");
            }
        }
        println!();
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
