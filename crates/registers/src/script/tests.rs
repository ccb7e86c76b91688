//! The digests of the scripts, and their rows in the table of commands that arrive late.

use super::*;

const NAMES: [&str; 8] = [
    "prepare",
    "accept",
    "read_register",
    "collect",
    "copy",
    "install",
    "mark",
    "raise",
];

#[test]
fn the_bytes_that_nodes_get_are_those_that_are_written_down() {
    let line = |(name, script): (&&str, &Script)| {
        assert_eq!(
            script.sha1,
            sha1_smol::Sha1::from(script.source).digest().to_string()
        );
        format!("{name} {} {}\n", script.sha1, script.source.len())
    };
    let all: String = NAMES.iter().zip(ALL).map(line).collect();
    assert_eq!(
        all,
        include_str!("../digests.txt"),
        "name, digest and bytes of each script"
    );
}

#[test]
fn every_script_says_why_it_may_arrive_late() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/script");
    for name in NAMES {
        let file = std::fs::read_to_string(format!("{folder}/{name}.lua")).expect("it is there");
        assert!(
            file.lines()
                .any(|line| line.starts_with("-- Late, or once more: ")),
            "{name}"
        );
    }
}
