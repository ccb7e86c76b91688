//! Budgets of lines, which a change lowers or says why not: a library that does twelve things must
//! stay one that can be read.

use super::{Source, library, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// What may not grow, how it is counted, how much there may be, and the goal.
type Budget = (&'static str, fn() -> usize, usize, usize);

const BUDGETS: [Budget; 4] = [
    ("lines of the library, before inline tests", lines, 49_960, 37_000),
    ("files of the library", files, 376, 190),
    ("lines that a build without features compiles", lines_without_features, 34_300, 20_000),
    ("`unreachable!` in the library", unreachable, 41, 8),
];

#[test]
fn the_library_does_not_grow() {
    let mut broken = Vec::new();
    for (what, count, budget, goal) in BUDGETS {
        let found = count();
        println!("{what}: {found} of {budget}, goal {goal}");
        if found > budget {
            broken.push(format!("{what}: {found}, and {budget} are allowed"));
        }
        // A budget that is far above what there is holds nothing.
        if found + found / 50 < budget {
            broken.push(format!("{what}: {found}: lower the budget of {budget}"));
        }
    }
    super::assert_none("budgets in tests/tidy/budgets.rs", &broken);
}

/// The files with code of the library, and not with its tests.
fn sources() -> Vec<Source> {
    let is_code = |it: &Source| !it.path.contains("test") && !it.path.ends_with("/fixture.rs");
    library().into_iter().filter(is_code).collect()
}

fn lines() -> usize {
    sources().iter().map(|source| source.code().count()).sum()
}

fn files() -> usize {
    sources().len()
}

fn unreachable() -> usize {
    let of =
        |source: &Source| source.code().filter(|(_, line)| line.contains("unreachable!")).count();
    sources().iter().map(of).sum()
}

fn lines_without_features() -> usize {
    let mut compiled = BTreeSet::new();
    compile("src/lib.rs", &mut compiled);
    let is_compiled = |source: &Source| compiled.contains(&source.path);
    let sources = sources().into_iter().filter(is_compiled);
    sources.map(|source| source.code().count()).sum()
}

/// Adds the file and those of its modules that need no feature.
fn compile(path: &str, compiled: &mut BTreeSet<String>) {
    let text = fs::read_to_string(root().join(path)).unwrap();
    compiled.insert(path.to_owned());
    let folder = match path.strip_suffix("/mod.rs").or(path.strip_suffix("/lib.rs")) {
        Some(folder) => folder.to_owned(),
        None => path.strip_suffix(".rs").unwrap().to_owned(),
    };
    if text.contains("mod $room;") {
        // A macro names its modules.
        let is_room = |it: &Source| it.path.starts_with(&format!("{folder}/"));
        compiled.extend(sources().into_iter().filter(is_room).map(|source| source.path));
    }
    let mut needs_more = false;
    for line in text.lines().map(str::trim) {
        let words = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
        if let Some(name) = words.strip_prefix("mod ").and_then(|it| it.strip_suffix(';')) {
            let candidates = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            let file = candidates.into_iter().find(|file| root().join(file).exists());
            if let Some(file) = file.filter(|_| !needs_more) {
                compile(&file, compiled);
            }
        }
        needs_more = line.starts_with("#[cfg(") || (needs_more && line.starts_with("#["));
    }
}

#[test]
fn what_a_build_without_features_compiles_is_found() {
    let mut compiled = BTreeSet::new();
    compile("src/lib.rs", &mut compiled);
    let found = |path: &str| compiled.contains(path);
    assert!(found("src/client/acquire.rs") && found("src/engine/mod.rs"));
    assert!(!found("src/zookeeper/mod.rs") && !found("src/embedded/nodes.rs"));
    assert!(PathBuf::from(root()).join("src/zookeeper").exists(), "the folder has another name");
}
