//! Manifests name the test programs (`autotests = false`), and programs their modules: a file that
//! neither names has tests that nobody runs.

use super::{Source, assert_none, files};
use std::collections::BTreeSet;

/// What cargo finds by itself.
const FOUND_BY_CARGO: [&str; 4] = [
    "tests/build.rs",
    "tests/integrations/examples",
    "tests/integrations/tests",
    "tests/warm_pair/main.rs",
];

/// The path of a file, from the root of the repository, that a file in `folder` names.
fn resolved(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// The files that this manifest, or this program, names by their paths.
fn named(source: &Source) -> impl Iterator<Item = String> {
    let (folder, _) = source.path.rsplit_once('/').expect("a folder");
    let paths = source
        .text
        .lines()
        .filter_map(|line| line.split_once("path = \"")?.1.split('"').next());
    paths
        .filter(|path| path.ends_with(".rs"))
        .map(|path| resolved(folder, path))
}

/// The files of the modules that this file declares.
fn declared(source: &Source) -> impl Iterator<Item = String> {
    let (folder, file) = source.path.rsplit_once('/').expect("a folder");
    let folder = match file {
        "main.rs" | "mod.rs" | "lib.rs" => folder.to_owned(),
        file => format!("{folder}/{}", file.trim_end_matches(".rs")),
    };
    let names = source.text.lines().filter_map(|line| {
        let line = line.trim().strip_suffix(';')?;
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("pub(crate) ")
            .unwrap_or(line)
            .strip_prefix("mod ")
    });
    names.flat_map(move |name| {
        [
            format!("{folder}/{name}.rs"),
            format!("{folder}/{name}/mod.rs"),
        ]
    })
}

#[test]
fn every_test_file_belongs_to_a_program_that_cargo_runs() {
    let sources = files("tests", "rs");
    let mut known: BTreeSet<String> = files("tests", "toml").iter().flat_map(named).collect();
    known.extend(sources.iter().flat_map(named));
    known.extend(sources.iter().flat_map(declared));
    let mut lost = Vec::new();
    for Source { path, .. } in sources {
        let is_found = FOUND_BY_CARGO.iter().any(|it| path.starts_with(it));
        if !is_found && !known.contains(&path) {
            lost.push(path);
        }
    }
    assert_none(
        "a test file is a program of a manifest in tests, or a module of one",
        &lost,
    );
}
