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
        let width = |column: usize| {
            let cells = self.0.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.0[0].len()).map(width).collect();
        for (index, row) in self.0.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                // The names to the left, the numbers to the right.
                line += &match column {
                    0 => format!("| {cell:<width$} |"),
                    _ => format!(" {cell:>width$} |"),
                };
            }
            println!("{line}");
            if index == 0 {
                // As wide as the cells and the blanks around them; a colon puts numbers to the right.
                let dashes = |(column, &width): (usize, &usize)| {
                    format!("|{}{}", "-".repeat(width + 1), if column == 0 { '-' } else { ':' })
                };
                println!("{}|", widths.iter().enumerate().map(dashes).collect::<String>());
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
