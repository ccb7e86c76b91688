//! Checks the table of faults: each test that it names exists.

use std::fs;
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("../../../docs/faults.md");

/// The number of faults in the table.
const ROWS: usize = 102;

/// What runs programs, and modules of `api`, over TLS as well.
const CHECK: &str = include_str!("../../../check");

/// What its third column says of a fault that does not pass through a connection.
const WITHOUT_CONNECTION: [&str; 4] = [
    "as here",
    "no fault of the connection",
    "in the server",
    "in the client",
];

struct Row {
    fault: &'static str,
    /// The tests, or the reason why there are none.
    tested: &'static str,
    over_tls: &'static str,
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| line.starts_with("| "));
    let rows = lines.map(|line| {
        let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
        let mut next = || cells.next().expect("three columns");
        Row {
            fault: next(),
            tested: next(),
            over_tls: next(),
        }
    });
    rows.skip(1).collect()
}

/// The tests that a cell names.
fn tests(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split('`').skip(1).step_by(2)
}

/// Are the tests of this file run over TLS as well?
fn is_run_over_tls(test: &str) -> bool {
    let file = test.split("::").next().expect("a file");
    let module = file.replace('/', "::");
    let listed = |list: &str| {
        let list = CHECK
            .split_once(&format!("readonly {list}=\""))
            .expect("a list")
            .1;
        list.split('"')
            .next()
            .expect("its end")
            .split_whitespace()
            .any(|listed| listed == module || module.starts_with(&format!("{listed}::")))
    };
    listed("PROGRAMS_OVER_TLS") || listed("MODULES_OVER_TLS")
}

/// Does a test of this name exist?
fn exists(test: &str) -> bool {
    let (name, function) = test.split_once("::").expect("file::function");
    let text = file(name).and_then(|path| fs::read_to_string(path).ok());
    text.is_some_and(|text| is_test(&text, function))
}

/// The file of a test, by its name in the table.
fn file(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths = [
        format!("api/{name}.rs"),
        format!("alone/{name}.rs"),
        format!("{name}.rs"),
        format!("{name}/main.rs"),
        format!("../{name}.rs"),
    ];
    paths
        .iter()
        .map(|path| root.join(path))
        .find(|path| path.is_file())
}

/// Is there a test of this name in the file? A program without the usual harness is a test itself,
/// and those for each backend are in the list of a macro.
fn is_test(text: &str, function: &str) -> bool {
    let begins = format!("fn {function}(");
    let at = text.lines().position(|line| line.starts_with(&begins));
    at.is_some_and(|at| {
        let before = text.lines().nth(at.saturating_sub(1)).unwrap_or_default();
        let is_listed = text
            .lines()
            .any(|line| line.trim() == format!("{function},"));
        before == "#[test]" || function == "main" || is_listed
    })
}

#[test]
fn every_fault_has_a_test_that_exists_or_a_reason() {
    let mut broken = Vec::new();
    for Row { fault, tested, .. } in rows() {
        if tested
            .strip_prefix("not here: ")
            .is_some_and(|reason| reason.len() > 40)
        {
            continue;
        }
        if tests(tested).next().is_none() {
            broken.push(format!("{fault}: neither a test nor a reason"));
        }
        let missing = tests(tested).filter(|test| !exists(test));
        broken.extend(missing.map(|test| format!("{fault}: no test {test}")));
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(rows().len(), ROWS);
}

#[test]
fn every_fault_of_a_connection_is_injected_over_tls_as_well() {
    let mut broken = Vec::new();
    for Row {
        fault,
        tested,
        over_tls,
    } in rows()
    {
        if WITHOUT_CONNECTION.contains(&over_tls) {
            continue;
        }
        let is_same = !over_tls.starts_with("the same") || tests(tested).any(is_run_over_tls);
        if !is_same || !tests(over_tls).all(exists) {
            broken.push(format!("{fault}: {over_tls}"));
        }
        if !over_tls.starts_with("the same") && tests(over_tls).next().is_none() {
            broken.push(format!("{fault}: no test over TLS"));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_function_that_is_no_test_is_detected() {
    assert!(is_test("#[test]\nfn a_test() {\n}", "a_test"));
    assert!(!is_test("fn a_test() {\n}", "a_test"));
    assert!(!is_test("#[test]\nfn a_test_of_more() {\n}", "a_test"));
    assert!(file("faults/rows").is_some() && file("soak").is_some() && file("nothing").is_none());
}
