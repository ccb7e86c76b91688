//! Reads the logs that the clients wrote, and checks them.

use std::collections::HashMap;
use std::path::Path;

use super::journal::{Journal, RESOURCES, Section};

/// The findings in the log of one resource, or of all.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// How often the lock was acquired.
    pub(crate) sections: usize,
    /// How often a client that still held the lock afterwards incremented the counter.
    pub(crate) counted: usize,
    /// Holds that began before another one had ended.
    pub(crate) overlaps: usize,
    /// Holds whose end was not logged, because the process was killed.
    pub(crate) open: usize,
    /// Incomplete lines, for the same reason.
    pub(crate) torn: usize,
    /// Increments that another client's write has overwritten.
    pub(crate) lost_updates: usize,
}

#[derive(Clone, Copy)]
struct Held {
    from: u64,
    until: u64,
    /// The value written to the counter, if any and if known.
    count: Option<u64>,
    is_open: bool,
}

/// Checks the journals of all resources.
pub(crate) fn check(folder: &Path) -> Findings {
    let mut all = Findings::default();
    for resource in 0..RESOURCES.len() {
        let found = check_one(folder, resource);
        all.sections += found.sections;
        all.counted += found.counted;
        all.overlaps += found.overlaps;
        all.open += found.open;
        all.torn += found.torn;
        all.lost_updates += found.lost_updates;
    }
    all
}

fn check_one(folder: &Path, resource: usize) -> Findings {
    let mut found = Findings::default();
    let held = read(&Journal::text(folder, resource), &mut found);
    found.sections = held.len();
    found.open = held.iter().filter(|held| held.is_open).count();
    let mut latest = 0;
    for held in &held {
        found.overlaps += usize::from(held.from < latest);
        latest = latest.max(held.until);
    }
    // Each client writes one more than it has read, so no value may be written twice. Missing
    // values were written by clients that were killed before they could log them.
    let counts: Vec<u64> = held.iter().filter_map(|held| held.count).collect();
    found.counted = counts.len();
    found.lost_updates = counts.windows(2).filter(|pair| pair[1] <= pair[0]).count();
    let end = Journal::open(folder, resource).count();
    let most = u64::try_from(found.counted + found.open).expect("a small number");
    let last = counts.last().copied().unwrap_or(0);
    found.lost_updates += usize::from(end < last || end > most);
    found
}

/// The holds in a log, ordered by their beginning.
fn read(text: &str, found: &mut Findings) -> Vec<Held> {
    let mut sections: HashMap<Section, Held> = HashMap::new();
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        if words.len() != 7 || words[6] != "." {
            found.torn += 1;
            continue;
        }
        let number = |index: usize| -> u64 { words[index].parse().expect("a number") };
        let section = (number(1), number(2), number(3));
        if words[0] == "in" {
            let from = number(4);
            let until = number(5);
            let held = Held {
                from,
                until,
                count: None,
                is_open: true,
            };
            assert!(
                sections.insert(section, held).is_none(),
                "{section:?} begins twice"
            );
        } else {
            let held = sections.get_mut(&section).expect("what ends has begun");
            held.until = number(4);
            held.count = Some(number(5)).filter(|count| *count > 0);
            held.is_open = false;
        }
    }
    let mut held: Vec<Held> = sections.into_values().collect();
    held.sort_by_key(|held| held.from);
    held
}

#[cfg(test)]
mod tests {
    use super::super::journal::Span;
    use super::*;

    /// The findings in a log written by `write`.
    fn judged(write: impl Fn(&Journal)) -> Findings {
        let folder = tempfile::tempdir().unwrap();
        Journal::create(folder.path(), 0);
        write(&Journal::open(folder.path(), 0));
        check_one(folder.path(), 0)
    }

    fn inside(journal: &Journal, process: u64, from: u64, end: u64, count: u64) {
        journal.entered(
            (process, 0, 0),
            Span {
                granted: from,
                until: 99,
                latest: 99,
            },
        );
        journal.set_count(count);
        journal.left((process, 0, 0), end, count);
    }

    #[test]
    fn a_log_without_errors_has_no_findings_and_each_error_is_found() {
        let clean = judged(|journal| {
            inside(journal, 1, 10, 20, 1);
            inside(journal, 2, 20, 30, 2);
        });
        assert_eq!((clean.sections, clean.counted), (2, 2));
        assert_eq!(
            (clean.overlaps, clean.open, clean.torn, clean.lost_updates),
            (0, 0, 0, 0)
        );

        let overlapping = judged(|journal| {
            inside(journal, 1, 10, 20, 1);
            inside(journal, 2, 19, 30, 2);
        });
        assert_eq!((overlapping.overlaps, overlapping.lost_updates), (1, 0));

        let lost = judged(|journal| {
            inside(journal, 1, 10, 20, 1);
            inside(journal, 2, 20, 30, 1);
        });
        assert_eq!((lost.overlaps, lost.lost_updates), (0, 1));
        // A killed client may have incremented the counter, and holds the lock until its validity
        // ends.
        let killed = judged(|journal| {
            journal.entered(
                (3, 0, 0),
                Span {
                    granted: 5,
                    until: 15,
                    latest: 15,
                },
            );
            inside(journal, 1, 10, 20, 2);
        });
        assert_eq!(
            (killed.open, killed.overlaps, killed.lost_updates),
            (1, 1, 0)
        );
    }
}
