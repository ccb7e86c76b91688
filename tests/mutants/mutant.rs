//! Mutants as they are written down, in the `.diff` files:
//!
//! ```text
//! # The title of the file's section in docs/mutants.md
//!
//! == name of the mutant
//! breaks M V
//! killed by --test api locks::acquire::name_of_the_test
//! in name_of_the_function
//! -    lines that are there
//! +    lines that come instead
//!      lines that stay, with a blank before them
//! ```
//!
//! No file is named: a mutant is found by its item and its lines, wherever these are.

use crate::killer::Killer;
use std::fs;
use std::path::Path;

/// The letters of the promises that a mutant can break; `head.md` says what they are.
const PROMISES: &str = "MFVOCDLKHRSW";

/// A `.diff` file: a section of the table.
#[derive(Debug)]
pub(crate) struct Section {
    /// The file's name.
    pub(crate) file: String,
    pub(crate) title: String,
    pub(crate) mutants: Vec<Mutant>,
}

/// A small mistake, and the test that must fail with it.
#[derive(Debug)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// The letters of the guarantees that it breaks.
    pub(crate) breaks: String,
    pub(crate) killer: Killer,
    /// The innermost function, constant or type that has the lines; of a script in Lua, its file.
    pub(crate) item: String,
    /// Whole lines.
    pub(crate) find: String,
    pub(crate) replacement: String,
}

/// The folder of this program.
fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/mutants"))
}

/// Reads all sections, in the order of their files' names.
pub(crate) fn sections() -> Vec<Section> {
    let entries = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "diff"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let file = path.file_name().unwrap().to_str().unwrap();
            section(file, &fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn section(file: &str, text: &str) -> Section {
    let (title, text) = text.split_once('\n').unwrap_or_default();
    let title = title
        .strip_prefix("# ")
        .unwrap_or_else(|| panic!("{file} has no title"));
    let parts = text.split("\n== ").skip(1);
    Section {
        file: file.to_owned(),
        title: title.to_owned(),
        mutants: parts.map(Mutant::parse).collect(),
    }
}

impl Mutant {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let name = lines.next().unwrap_or_default().to_owned();
        let mut field = |field: &str| {
            let line = lines.next().unwrap_or_default();
            let value = line.strip_prefix(field);
            value
                .unwrap_or_else(|| panic!("{name}: {field:?} comes next, not {line:?}"))
                .to_owned()
        };
        let breaks = field("breaks ");
        let killer = field("killed by ");
        let item = field("in ");
        let is_promise = |letter: &str| letter.len() == 1 && PROMISES.contains(letter);
        assert!(
            breaks.split(' ').all(is_promise),
            "{name}: no promise is called {breaks:?}"
        );
        let mut find = String::new();
        let mut replacement = String::new();
        for line in lines {
            let (sign, text) = line.split_at(1);
            assert!(matches!(sign, "-" | "+" | " "), "{name}: {line}");
            if sign != "+" {
                find += &format!("{text}\n");
            }
            if sign != "-" {
                replacement += &format!("{text}\n");
            }
        }
        Self {
            killer: Killer::parse(&killer),
            name,
            breaks,
            item,
            find,
            replacement,
        }
    }
}
