//! What a mutant changes: a few lines of one file, read from the `.diff` files.
//!
//! ```text
//! == name of the mutant
//! src/file.rs
//! -    lines that are there
//! +    lines that come instead
//!      lines that stay, with a blank before them
//! ```

use crate::table::folder;
use std::fs;
use std::ops::Range;

/// A mistake that can be made in one place.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) mutant: String,
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// Whole lines that are found once in it.
    find: String,
    replacement: String,
}

/// Reads all changes there are.
pub(crate) fn all() -> Vec<Change> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let diffs = entries.filter(|path| path.extension().is_some_and(|ending| ending == "diff"));
    diffs.flat_map(|path| read(&fs::read_to_string(path).unwrap())).collect()
}

fn read(text: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(mutant) = line.strip_prefix("== ") {
            let [file, find, replacement] = [const { String::new() }; 3];
            changes.push(Change { mutant: mutant.to_owned(), file, find, replacement });
            continue;
        }
        let change = changes.last_mut().unwrap_or_else(|| panic!("before any mutant: {line}"));
        if change.file.is_empty() {
            line.clone_into(&mut change.file);
            continue;
        }
        let (sign, text) = line.split_at(1);
        assert!(matches!(sign, "-" | "+" | " "), "{}: {line}", change.mutant);
        if sign != "+" {
            change.find += &format!("{text}\n");
        }
        if sign != "-" {
            change.replacement += &format!("{text}\n");
        }
    }
    changes
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

impl Change {
    /// The lines that are changed, counted from zero and without those that stay at both ends, and
    /// what comes instead.
    pub(crate) fn place(&self, source: &str) -> Option<(Range<usize>, Vec<String>)> {
        let text = format!("\n{source}");
        let at = text.find(&format!("\n{}", self.find))?;
        let first = text[..at].matches('\n').count();
        let (old, new) = (lines(&self.find), lines(&self.replacement));
        let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let left = old.len().min(new.len()) - before;
        let ends = old.iter().rev().zip(new.iter().rev()).take(left);
        let after = ends.take_while(|(old, new)| old == new).count();
        let changed = first + before..first + old.len() - after;
        Some((changed, new[before..new.len() - after].to_vec()))
    }

    /// The source with this mistake in it.
    pub(crate) fn apply(&self, source: &str) -> Result<String, String> {
        // Whole lines: a match begins at the start of a line.
        let text = format!("\n{source}");
        let find = format!("\n{}", self.find);
        match text.matches(&find).count() {
            1 if self.find != self.replacement => {}
            1 => return Err("it changes nothing".to_owned()),
            count => return Err(format!("found {count} times in {}:\n{}", self.file, self.find)),
        }
        Ok(text.replacen(&find, &format!("\n{}", self.replacement), 1)[1..].to_owned())
    }
}
