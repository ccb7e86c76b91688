//! The dependencies are few, and those of a feature are optional.

use super::{FOLDERS, assert_none, files, root};
use std::fs;

#[test]
fn unsafe_code_is_forbidden_and_dependencies_are_few() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    let section = manifest
        .split("[dependencies]")
        .nth(1)
        .unwrap()
        .split("\n[")
        .next()
        .unwrap();
    let (optional, always): (Vec<_>, Vec<_>) = section
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .partition(|(_, value)| value.contains("optional = true"));
    let names = |list: &[(&str, _)]| {
        list.iter()
            .map(|(name, _)| name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&always),
        ["crossbeam-channel", "getrandom", "mio", "redlatch-protocol"]
    );
    let of_features = [
        "redlatch-embedded",
        "redlatch-registers",
        "redlatch-zookeeper",
    ];
    let of_tls = ["rustls", "rustls-native-certs", "webpki-roots"];
    let of_monitoring = ["tracing", "metrics"];
    let of_files = ["serde", "humantime"];
    let all = [&of_features[..], &of_tls, &of_monitoring, &of_files].concat();
    assert_eq!(names(&optional), all);
    let others: Vec<&str> = manifest
        .lines()
        .filter(|line| line.contains(".dependencies]"))
        .collect();
    let only = [("unix", "rustix"), ("windows", "socket2")];
    let headings = only.map(|(platform, _)| format!("[target.'cfg({platform})'.dependencies]"));
    assert_eq!(others, headings);
    for (heading, (_, name)) in headings.iter().zip(only) {
        let there = manifest
            .split(heading)
            .nth(1)
            .unwrap()
            .split("\n[")
            .next()
            .unwrap();
        let lines = there.lines().filter(|line| !line.starts_with('#'));
        let needed = lines.filter(|line| !line.contains("optional = true"));
        let needed = needed
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, _)| name);
        assert_eq!(needed.collect::<String>(), name, "{there}");
    }
}

#[test]
fn the_pure_crates_depend_on_nothing_that_reads_or_writes() {
    let protocol = Some("redlatch-protocol");
    for (name, needed) in [
        ("protocol", None),
        ("registers", protocol),
        ("zookeeper", protocol),
    ] {
        let path = root().join(format!("crates/{name}/Cargo.toml"));
        let manifest = fs::read_to_string(path).unwrap();
        let section = manifest
            .split("\n[dependencies]")
            .nth(1)
            .unwrap_or_default();
        let section = section.split("\n[").next().unwrap();
        let found = section
            .lines()
            .filter_map(|line| line.split_once(" = "))
            .map(|it| it.0);
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(needed), "{name}");
        assert!(!manifest.contains(".dependencies]"), "{name}");
    }
}

#[test]
fn only_the_binding_to_c_has_unsafe_code_of_its_own() {
    let mut found = Vec::new();
    let mut of_c = 0;
    for source in FOLDERS.iter().flat_map(|folder| files(folder, "rs")) {
        let block = concat!("unsafe", " {");
        let unsafe_lines = source.statements().filter(|(_, line)| line.contains(block));
        match source.path.starts_with("bindings/c/src/") {
            true => of_c += unsafe_lines.count(),
            false => found.extend(unsafe_lines.map(|(n, _)| format!("{}:{n}", source.path))),
        }
    }
    assert!(of_c > 0, "the rule sees none where there is some");
    assert_none("unsafe code", &found);
}
