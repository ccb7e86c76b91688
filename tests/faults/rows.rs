//! Checks the table of faults: each test that it names exists.

use std::fs;
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("rows.md");

/// The number of faults in the table.
const ROWS: usize = 63;

/// The faults, and the tests or the reason of each.
fn rows() -> Vec<(&'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| line.starts_with("| "));
    let cells = lines.map(|line| {
        let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
        (cells.next().expect("a fault"), cells.next().expect("what tests it"))
    });
    cells.skip(1).collect()
}

/// The file of a test, by its name in the table.
fn file(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths = [format!("tests/{name}.rs"), format!("tests/{name}/main.rs"), format!("{name}.rs")];
    paths.iter().map(|path| root.join(path)).find(|path| path.is_file())
}

/// Is there a test of this name in the file? A program without the usual harness is a test itself.
fn is_test(text: &str, function: &str) -> bool {
    let begins = format!("fn {function}(");
    let at = text.lines().position(|line| line.starts_with(&begins));
    at.is_some_and(|at| {
        let before = text.lines().nth(at.saturating_sub(1)).unwrap_or_default();
        before == "#[test]" || function == "main"
    })
}

#[test]
fn every_fault_has_a_test_that_exists_or_a_reason() {
    let mut broken = Vec::new();
    for (fault, tested) in rows() {
        if tested.strip_prefix("not here: ").is_some_and(|reason| reason.len() > 40) {
            continue;
        }
        let tests: Vec<&str> = tested.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            broken.push(format!("{fault}: neither a test nor a reason"));
        }
        for test in tests {
            let (name, function) = test.split_once("::").expect("file::function");
            let text = file(name).and_then(|path| fs::read_to_string(path).ok());
            if !text.is_some_and(|text| is_test(&text, function)) {
                broken.push(format!("{fault}: no test {test}"));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(rows().len(), ROWS);
}

#[test]
fn a_function_that_is_no_test_is_detected() {
    assert!(is_test("#[test]\nfn a_test() {\n}", "a_test"));
    assert!(!is_test("fn a_test() {\n}", "a_test"));
    assert!(!is_test("#[test]\nfn a_test_of_more() {\n}", "a_test"));
    assert!(file("faults/rows").is_some() && file("soak").is_some() && file("nothing").is_none());
}
