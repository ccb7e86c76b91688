//! The README shows code of the crate's own pages.

use super::root;
use std::fs;

#[test]
fn the_readme_and_the_crate_share_one_example() {
    let example = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .skip_while(|line| !line.contains("let client = LockClient::new"));
        let lines = lines.take_while(|line| !line.contains("# Ok") && !line.contains("Ok(())"));
        lines
            .map(|line| line.trim_start_matches("//!").trim().to_owned())
            .collect()
    };
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let crate_page = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    assert_eq!(example(&readme), example(&crate_page));
    assert!(!example(&readme).is_empty());
}
