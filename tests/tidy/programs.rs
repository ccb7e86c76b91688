//! Manifests list the test programs (`autotests = false`): a file could be missing there.

use super::{assert_none, files, root};
use std::fs;

#[test]
fn every_test_file_belongs_to_a_program_that_cargo_runs() {
    let folders = ["tests", "tests/integrations", "tests/models"];
    let manifest = |folder| fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let manifest: String = folders.into_iter().map(manifest).collect();
    let mut programs = String::new();
    for source in files("tests", "rs") {
        let name = source
            .path
            .trim_start_matches("tests/")
            .trim_end_matches(".rs");
        let name = name.trim_end_matches("/main");
        if !name.contains('/') && manifest.contains(&format!("[[test]]\nname = \"{name}\"\n")) {
            programs += &source.text;
        }
    }
    let mut lost = Vec::new();
    for source in files("tests", "rs") {
        let name = source
            .path
            .trim_start_matches("tests/")
            .trim_end_matches(".rs");
        let name = name.trim_end_matches("/main");
        let is_program = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
        let is_module = programs.contains(&format!("\nmod {name};\n"));
        // `build.rs` is the crate's build script.
        let is_of_cargo = is_program || is_module || name == "build";
        if !name.contains('/') && !is_of_cargo {
            lost.push(source.path);
        }
    }
    assert_none(
        "a test file is a [[test]] of a manifest in tests, or a module of one",
        &lost,
    );
}
