//! Reads the page of metrics of `redlatch exporter`, and takes it for wrong where it can.

use std::collections::BTreeMap;

const GUIDE: &str = include_str!("../../../src/guide/monitoring.md");

/// Values by name and labels, as in `redlatch_node_up{node="redis://…"}`.
#[derive(Debug)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Reads OpenMetrics strictly: each metric has one HELP, one TYPE, and its samples behind them.
    #[track_caller]
    pub(crate) fn parse(page: &str) -> Self {
        let mut samples = BTreeMap::new();
        let mut families: Vec<&str> = Vec::new();
        let body = page.strip_suffix("# EOF\n").expect("its end");
        let mut lines = body.lines().peekable();
        while let Some(line) = lines.next() {
            let help = line
                .strip_prefix("# HELP ")
                .unwrap_or_else(|| panic!("no HELP: {line}"));
            let (name, help) = help.split_once(' ').expect("a name and a text");
            assert!(!families.contains(&name) && !help.is_empty(), "{line}");
            assert!(
                GUIDE.contains(&format!("\n| `{name}` | ")),
                "{name} is not in the guide"
            );
            let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(
                name.starts_with("redlatch_") && name.chars().all(is_of_name),
                "{line}"
            );
            families.push(name);
            assert_eq!(lines.next(), Some(&*format!("# TYPE {name} gauge")));
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                let labels = series.strip_prefix(name).expect("a sample of this metric");
                assert!(labels.is_empty() || are_labels(labels), "{line}");
                let value: f64 = value.parse().expect("a number");
                assert!(value.is_finite(), "{line}");
                assert_eq!(
                    samples.insert(series.to_owned(), value),
                    None,
                    "twice: {line}"
                );
            }
        }
        Self(samples)
    }

    pub(crate) fn value(&self, series: &str) -> Option<f64> {
        self.0.get(series).copied()
    }

    /// The sum of all series of this name.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        let of_name = |series: &str| series.split('{').next() == Some(name);
        self.0
            .iter()
            .filter(|(series, _)| of_name(series))
            .map(|(_, value)| value)
            .sum()
    }
}

/// Is it `{name="value",…}`, with nothing in the values that must be escaped?
fn are_labels(text: &str) -> bool {
    let Some(mut rest) = text.strip_prefix('{').and_then(|it| it.strip_suffix('}')) else {
        return false;
    };
    loop {
        let Some((name, behind)) = rest.split_once("=\"") else {
            return false;
        };
        if !name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            return false;
        }
        let mut end = None;
        let mut characters = behind.char_indices();
        while let Some((index, character)) = characters.next() {
            match character {
                '\\' if matches!(characters.next(), Some((_, '\\' | '"' | 'n'))) => {}
                '\\' | '\n' => return false,
                '"' => {
                    end = Some(index);
                    break;
                }
                _ => {}
            }
        }
        match end.map(|end| &behind[end + 1..]) {
            Some("") => return true,
            Some(more) if more.starts_with(',') => rest = &more[1..],
            _ => return false,
        }
    }
}
