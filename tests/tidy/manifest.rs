//! Cargo.toml: what the library depends on.

use super::root;
use std::fs;

#[test]
fn unsafe_code_is_forbidden_and_dependencies_are_few() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    let section = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    assert_eq!(needed(section), ["crossbeam-channel", "getrandom", "mio"]);
    let is_other = |line: &&str| line.contains(".dependencies]");
    let mut on_platforms = Vec::new();
    for header in manifest.lines().filter(is_other) {
        let section = manifest.split(header).nth(1).unwrap().split("\n[").next().unwrap();
        on_platforms.extend(needed(section));
    }
    assert_eq!(on_platforms, ["rustix"]);
}

/// The names of the dependencies that are not optional.
fn needed(section: &str) -> Vec<&str> {
    let lines = section.lines().filter(|line| !line.starts_with('#'));
    let needed = lines.filter(|line| !line.contains("optional = true"));
    needed.filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect()
}
