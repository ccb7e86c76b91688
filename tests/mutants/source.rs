//! The source in which mistakes are made, and the items in it: functions, constants, types, and
//! scripts in Lua. They are found by their lines, as rustfmt writes them.

use crate::mutant::Mutant;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The folders whose files may have mutants.
const FOLDERS: [&str; 3] = ["src", "crates", "cli/src"];

/// The words with which an item begins, before its name.
const ITEMS: [&str; 9] = [
    "fn",
    "const",
    "static",
    "struct",
    "enum",
    "union",
    "type",
    "trait",
    "macro_rules!",
];

/// What may stand before these words.
const QUALIFIERS: [&str; 5] = ["pub", "const", "async", "unsafe", "default"];

/// The folder of this repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests are in a folder of it")
}

/// An unchanged file of this repository.
pub(crate) fn original(file: &str) -> String {
    let path = root().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The same, if there is a file of this name.
pub(crate) fn existing(file: &str) -> Option<String> {
    root().join(file).exists().then(|| original(file))
}

/// What the module at this path, without an ending, has in its file and in its folder. One that
/// lies elsewhere, as an example, has nothing there.
pub(crate) fn module(path: &str) -> String {
    let mut sources = Sources::default();
    for path in [format!("{path}.rs"), path.to_owned()] {
        let path = root().join(path);
        if path.exists() {
            sources.add(&path);
        }
    }
    sources.0.into_values().collect()
}

/// A mistake that can be made in one place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// The lines of the item.
    item: Range<usize>,
    /// The lines that are changed, counted from zero and without those that stay at both ends.
    pub(crate) changed: Range<usize>,
    /// What comes instead.
    pub(crate) replacement: Vec<String>,
}

/// Files, by their paths from the root of the repository.
#[derive(Debug, Default)]
pub(crate) struct Sources(BTreeMap<String, String>);

impl Sources {
    /// Those of this repository.
    pub(crate) fn read() -> Self {
        let mut sources = Self::default();
        for folder in FOLDERS {
            sources.add(&root().join(folder));
        }
        sources
    }

    fn add(&mut self, path: &Path) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                self.add(&entry.unwrap().path());
            }
        } else if path
            .extension()
            .is_some_and(|ending| ending == "rs" || ending == "lua")
        {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
            self.0.insert(name.to_owned(), original(name));
        }
    }

    /// Where the mutant's item has its lines: in one place.
    pub(crate) fn locate(&self, mutant: &Mutant) -> Result<Change, String> {
        if mutant.find == mutant.replacement {
            return Err("it changes nothing".to_owned());
        }
        let mut found = Vec::new();
        for (file, text) in self
            .0
            .iter()
            .filter(|(_, text)| text.contains(&mutant.find))
        {
            let lines: Vec<&str> = text.lines().collect();
            for (changed, replacement) in places(mutant, text) {
                let Some((name, item)) = item_of(file, &lines, &changed) else {
                    continue;
                };
                if name == mutant.item {
                    found.push(Change {
                        file: file.clone(),
                        item,
                        changed,
                        replacement,
                    });
                }
            }
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            count => {
                let Mutant { item, find, .. } = mutant;
                let files: Vec<&str> = found.iter().map(|change| &*change.file).collect();
                Err(format!("found {count} times in {item}, {files:?}:\n{find}"))
            }
        }
    }

    /// The lines of the change's item, without their indents.
    fn item(&self, change: &Change) -> String {
        let lines: Vec<&str> = self.0[&change.file].lines().collect();
        trimmed(&lines[change.item.clone()].join("\n"))
    }
}

impl Change {
    /// The source with this mistake in it.
    pub(crate) fn apply(&self, source: &str) -> String {
        let mut lines: Vec<&str> = source.lines().collect();
        lines.splice(
            self.changed.clone(),
            self.replacement.iter().map(String::as_str),
        );
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The source of a commit, as far as it is not the same today.
#[derive(Debug)]
pub(crate) struct Base {
    /// The files that are not the same.
    files: Vec<String>,
    /// What they had in all, without indents.
    text: String,
}

impl Base {
    pub(crate) fn of(commit: &str) -> Self {
        let mut diff = vec!["diff", "--no-renames", "--name-only", commit, "--"];
        diff.extend(FOLDERS);
        let files: Vec<String> = git(&diff).lines().map(str::to_owned).collect();
        let mut kept = vec!["ls-tree", "-r", "--name-only", commit, "--"];
        kept.extend(FOLDERS);
        let mut text = "\n".to_owned();
        for file in git(&kept).lines() {
            if files.iter().any(|changed| changed == file) {
                let old = git(&["show", &format!("{commit}:{file}")]);
                text += &trimmed(&formatted(file, old));
            }
        }
        Self { files, text }
    }

    /// Is the item of this change another one than it was? That it was moved, within its file or to
    /// another one, is not a change.
    pub(crate) fn differs(&self, sources: &Sources, change: &Change) -> bool {
        let is_in_changed_file = self.files.contains(&change.file);
        is_in_changed_file && !self.text.contains(&format!("\n{}", sources.item(change)))
    }
}

fn git(arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text as rustfmt writes it today, so that another format is not a change.
fn formatted(file: &str, text: String) -> String {
    if !file.ends_with(".rs") {
        return text;
    }
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = rustfmt.stdin.take().unwrap();
    // In a thread: rustfmt may write before it has read all.
    let writer = thread::spawn(move || input.write_all(text.as_bytes()));
    let output = rustfmt.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(
        output.status.success(),
        "rustfmt cannot read {file} of the base"
    );
    String::from_utf8(output.stdout).unwrap()
}

fn trimmed(text: &str) -> String {
    text.lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

/// Where the mutant's lines are in this text, and what comes instead.
fn places(mutant: &Mutant, text: &str) -> Vec<(Range<usize>, Vec<String>)> {
    let old: Vec<&str> = mutant.find.lines().collect();
    let new: Vec<&str> = mutant.replacement.lines().collect();
    let before = old
        .iter()
        .zip(&new)
        .take_while(|(old, new)| old == new)
        .count();
    let left = old.len().min(new.len()) - before;
    let ends = old.iter().rev().zip(new.iter().rev()).take(left);
    let after = ends.take_while(|(old, new)| old == new).count();
    // Whole lines: a match begins at the start of a line.
    let text = format!("\n{text}");
    let find = format!("\n{}", mutant.find);
    let inside = || {
        new[before..new.len() - after]
            .iter()
            .map(|line| (*line).to_owned())
            .collect()
    };
    text.match_indices(&find)
        .map(|(at, _)| {
            let first = text[..at].matches('\n').count();
            (first + before..first + old.len() - after, inside())
        })
        .collect()
}

/// The name and the lines of the innermost item that has these lines; of Lua, the whole file.
fn item_of(file: &str, lines: &[&str], changed: &Range<usize>) -> Option<(String, Range<usize>)> {
    if file.ends_with(".lua") {
        return Some((file.rsplit('/').next()?.to_owned(), 0..lines.len()));
    }
    items_around(lines, changed).next()
}

/// The names and the lines of the items that have these lines, the innermost first.
pub(crate) fn items_around(
    lines: &[&str],
    changed: &Range<usize>,
) -> impl Iterator<Item = (String, Range<usize>)> {
    let headers = (0..=changed.start.min(lines.len() - 1)).rev();
    headers
        .filter_map(|header| Some((name(lines[header])?, header..end(lines, header))))
        .filter(|(_, item)| item.end >= changed.end)
}

/// The name of the item whose first line this is.
fn name(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(visibility) => visibility.split_once(')')?.1,
        None => line,
    };
    let mut words = line.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let next = words.peek()?;
        // `const fn` is a function, and `const NAME` is a constant.
        if ITEMS.contains(&word) && !ITEMS.contains(next) && !QUALIFIERS.contains(next) {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
            let name = next.split(|letter| !is_part(letter)).next()?;
            return (!name.is_empty()).then(|| name.to_owned());
        }
        if !QUALIFIERS.contains(&word) {
            return None;
        }
    }
    None
}

/// The line after the item that begins here.
fn end(lines: &[&str], header: usize) -> usize {
    if lines[header].ends_with([';', '}']) {
        return header + 1;
    }
    let indent = indent_of(lines[header]);
    for (at, line) in lines.iter().enumerate().skip(header + 1) {
        let text = line.trim();
        if text.is_empty() || indent_of(line) > indent {
            continue;
        }
        match text.as_bytes()[0] {
            b'}' => return at + 1,
            b')' | b']' if text.ends_with(';') => return at + 1,
            // A signature of several lines goes on.
            b')' | b']' | b'>' | b'-' | b'{' => {}
            _ if text == "where" => {}
            _ => return at,
        }
    }
    lines.len()
}

pub(crate) fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::killer::Killer;

    const SOURCE: &str = "\
impl Queue {
    pub(crate) const fn quorum(
        nodes: usize,
    ) -> usize
    where
        usize: Copy,
    {
        nodes / 2 + 1
    }

    const LIMITS: [u32; 2] = [
        1,
        2,
    ];
}
";

    fn item_at(line: usize) -> Option<String> {
        let lines: Vec<&str> = SOURCE.lines().collect();
        item_of("src/queue.rs", &lines, &(line..line + 1)).map(|(name, _)| name)
    }

    #[test]
    fn an_item_has_the_lines_between_its_name_and_its_end() {
        let names: Vec<_> = (0..SOURCE.lines().count()).map(item_at).collect();
        let quorum = || Some("quorum".to_owned());
        let limits = || Some("LIMITS".to_owned());
        let mut expected = vec![None];
        expected.extend((1..=8).map(|_| quorum()));
        expected.push(None);
        expected.extend((10..=13).map(|_| limits()));
        expected.push(None);
        assert_eq!(names, expected);
    }

    #[test]
    fn another_format_is_no_change() {
        let old = "fn quorum() -> usize { half(Nodes { all: 5 }) }\n";
        let new = "fn quorum() -> usize {\n    half(Nodes { all: 5 })\n}\n";
        assert_eq!(formatted("src/quorum.rs", old.to_owned()), new);
    }

    #[test]
    fn a_move_is_no_change_and_another_line_is_one() {
        let mutant = Mutant {
            name: "half of the nodes are a quorum".to_owned(),
            breaks: "M".to_owned(),
            killer: Killer::parse("--lib quorum::tests::three"),
            item: "quorum".to_owned(),
            find: "    nodes / 2 + 1\n".to_owned(),
            replacement: "    nodes / 2\n".to_owned(),
        };
        let base = Base {
            files: vec!["src/queue.rs".to_owned(), "src/quorum.rs".to_owned()],
            text: format!("\n{}", trimmed(SOURCE)),
        };
        let function: Vec<&str> = SOURCE
            .lines()
            .skip(1)
            .take(8)
            .map(|line| &line[4..])
            .collect();
        let moved = function.join("\n") + "\n";
        let sources = |text: &str| Sources([("src/quorum.rs".to_owned(), text.to_owned())].into());

        let there = sources(&moved);
        let change = there.locate(&mutant).unwrap();
        assert_eq!(
            (&*change.file, change.changed.clone()),
            ("src/quorum.rs", 6..7)
        );
        assert!(!base.differs(&there, &change), "only its place is another");
        let edited = sources(&moved.replace("usize: Copy", "usize: Clone"));
        let change = edited.locate(&mutant).unwrap();
        assert!(base.differs(&edited, &change));
        assert!(
            sources(&format!("{moved}{moved}")).locate(&mutant).is_err(),
            "which of them?"
        );
    }
}
