//! Reads what the clients wrote, and judges it.

use std::collections::HashMap;
use std::path::Path;

use super::journal::{Journal, RESOURCES, Section};

/// What the log of a resource says, or of all of them.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// How often the lock was got.
    pub(crate) sections: usize,
    /// How often it was counted up by someone who was still inside afterwards.
    pub(crate) counted: usize,
    /// Times that began before another's had ended.
    pub(crate) overlaps: usize,
    /// Times whose end was not written down: the process was killed.
    pub(crate) open: usize,
    /// Lines that are not whole, for the same reason.
    pub(crate) torn: usize,
    /// Counts that somebody else's write has undone.
    pub(crate) lost_updates: usize,
}

#[derive(Clone, Copy)]
struct Held {
    from: u64,
    until: u64,
    /// What was counted; none if nothing was, or if that is not known.
    count: Option<u64>,
    is_open: bool,
}

/// Judges the journals of all resources.
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
    // Everyone counts up by one from what it reads, so nobody may come to what somebody had come to
    // before. What is skipped was counted by someone who was killed before it could say so.
    let counts: Vec<u64> = held.iter().filter_map(|held| held.count).collect();
    found.counted = counts.len();
    found.lost_updates = counts.windows(2).filter(|pair| pair[1] <= pair[0]).count();
    let end = Journal::open(folder, resource).count();
    let most = u64::try_from(found.counted + found.open).expect("a small number");
    let last = counts.last().copied().unwrap_or(0);
    found.lost_updates += usize::from(end < last || end > most);
    found
}

/// The times of a log, in the order in which they began.
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
            let (from, until) = (number(4), number(5));
            let held = Held { from, until, count: None, is_open: true };
            assert!(sections.insert(section, held).is_none(), "{section:?} begins twice");
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

    /// What is found in a log that is written like this.
    fn judged(write: impl Fn(&Journal)) -> Findings {
        let folder = tempfile::tempdir().unwrap();
        Journal::create(folder.path(), 0);
        write(&Journal::open(folder.path(), 0));
        check_one(folder.path(), 0)
    }

    fn inside(journal: &Journal, process: u64, from: u64, end: u64, count: u64) {
        journal.entered((process, 0, 0), Span { granted: from, until: 99, latest: 99 });
        journal.set_count(count);
        journal.left((process, 0, 0), end, count);
    }

    #[test]
    fn a_clean_log_is_found_clean_and_each_fault_is_found() {
        let clean = judged(|journal| {
            inside(journal, 1, 10, 20, 1);
            inside(journal, 2, 20, 30, 2);
        });
        assert_eq!((clean.sections, clean.counted), (2, 2));
        assert_eq!((clean.overlaps, clean.open, clean.torn, clean.lost_updates), (0, 0, 0, 0));

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
        // Whoever was killed may have counted, and holds the lock until its validity ends.
        let killed = judged(|journal| {
            journal.entered((3, 0, 0), Span { granted: 5, until: 15, latest: 15 });
            inside(journal, 1, 10, 20, 2);
        });
        assert_eq!((killed.open, killed.overlaps, killed.lost_updates), (1, 1, 0));
    }
}
