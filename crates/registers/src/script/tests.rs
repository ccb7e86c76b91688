//! The digests of the scripts, and their rows in the table of commands that arrive late.

use super::*;

const NAMES: [&str; 7] =
    ["prepare", "accept", "read_register", "collect", "copy", "install", "mark"];

#[test]
fn the_bytes_that_nodes_get_are_those_that_are_written_down() {
    let line = |(name, script): (&&str, &Script)| {
        assert_eq!(script.sha1, sha1_smol::Sha1::from(script.source).digest().to_string());
        format!("{name} {} {}\n", script.sha1, script.source.len())
    };
    let all: String = NAMES.iter().zip(&ALL).map(line).collect();
    assert_eq!(all, include_str!("../digests.txt"), "name, digest and bytes of each script");
}

#[test]
fn the_table_of_late_arrivals_has_every_script() {
    let table = include_str!("../late_arrivals.md");
    for name in NAMES {
        assert!(table.lines().any(|line| line.contains(&format!("`{name}.lua` | "))), "{name}");
    }
    assert!(table.lines().all(|line| line.starts_with('|') && line.ends_with('|')));
}
