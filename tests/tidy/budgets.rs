//! Budgets of lines, which a change lowers or says why not: a library that does twelve things must
//! stay one that can be read.

use super::{Source, library};
use std::collections::BTreeSet;

/// What may not grow, how it is counted, how much there may be, and the goal.
type Budget = (&'static str, fn(&[Source]) -> usize, usize, usize);

const BUDGETS: [Budget; 4] = [
    ("lines of the library, before inline tests", lines, 46_935, 37_000),
    ("files of the library", files, 211, 190),
    ("lines that a build without features compiles", lines_without_features, 26_941, 20_000),
    ("`unreachable!` in the library", unreachable, 7, 8),
];

#[test]
fn the_library_does_not_grow() {
    let (sources, mut broken) = (sources(), Vec::new());
    for (what, count, budget, goal) in BUDGETS {
        let found = count(&sources);
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

fn lines(sources: &[Source]) -> usize {
    sources.iter().map(|source| source.code().count()).sum()
}

fn files(sources: &[Source]) -> usize {
    sources.len()
}

fn unreachable(sources: &[Source]) -> usize {
    let code = sources.iter().flat_map(Source::code);
    code.filter(|(_, line)| line.contains("unreachable!")).count()
}

fn lines_without_features(sources: &[Source]) -> usize {
    let compiled = compiled(sources);
    let sources = sources.iter().filter(|source| compiled.contains(&*source.path));
    sources.map(|source| source.code().count()).sum()
}

fn compiled(sources: &[Source]) -> BTreeSet<&str> {
    let mut compiled = BTreeSet::new();
    for root in ["src/lib.rs", "crates/protocol/src/lib.rs"] {
        compile(root, sources, &mut compiled);
    }
    compiled
}

/// Adds the file and those of its modules that need no feature.
fn compile<'a>(path: &str, sources: &'a [Source], compiled: &mut BTreeSet<&'a str>) {
    let Some(source) = sources.iter().find(|source| source.path == path) else { return };
    compiled.insert(&source.path);
    let folder = ["/mod.rs", "/lib.rs", ".rs"].iter().find_map(|end| path.strip_suffix(end));
    let folder = folder.unwrap();
    if source.text.contains("mod $room;") {
        // A macro names its modules.
        let rooms = sources.iter().filter(|it| it.path.starts_with(&format!("{folder}/")));
        compiled.extend(rooms.map(|room| &*room.path));
    }
    let mut needs_more = false;
    for line in source.text.lines().map(str::trim) {
        let words = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
        let module = words.strip_prefix("mod ").and_then(|it| it.strip_suffix(';'));
        if let Some(name) = module.filter(|_| !needs_more) {
            // One of them is there, or it is a module of tests.
            compile(&format!("{folder}/{name}.rs"), sources, compiled);
            compile(&format!("{folder}/{name}/mod.rs"), sources, compiled);
        }
        needs_more = line.starts_with("#[cfg(") || (needs_more && line.starts_with("#["));
    }
}

#[test]
fn what_a_build_without_features_compiles_is_found() {
    let sources = sources();
    let compiled = compiled(&sources);
    let found = |path: &str| compiled.contains(path);
    assert!(found("src/client/acquire.rs") && found("crates/protocol/src/engine/mod.rs"));
    assert!(!found("crates/zookeeper/src/lib.rs") && !found("crates/embedded/src/nodes.rs"));
    assert!(!found("crates/registers/src/lib.rs"));
    assert!(
        sources.iter().any(|it| it.path == "crates/embedded/src/nodes.rs"),
        "it has another name"
    );
}
