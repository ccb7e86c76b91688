//! The dependencies are few, and those of a feature are optional.

use super::root;
use std::fs;

#[test]
fn unsafe_code_is_forbidden_and_dependencies_are_few() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    let section = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let (optional, always): (Vec<_>, Vec<_>) = section
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .partition(|(_, value)| value.contains("optional = true"));
    let names =
        |list: &[(&str, _)]| list.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&always), ["crossbeam-channel", "getrandom", "mio"]);
    assert_eq!(
        names(&optional),
        ["rustls", "rustls-native-certs", "webpki-roots", "tracing", "metrics"]
    );
    let others: Vec<&str> = manifest
        .lines()
        .filter(|line| line.contains("dependencies]") && line.contains('.'))
        .collect();
    let tests = "[target.'cfg(target_os = \"linux\")'.dev-dependencies]";
    let (unix, windows) =
        ("[target.'cfg(unix)'.dependencies]", "[target.'cfg(windows)'.dependencies]");
    assert_eq!(others, [unix, windows, tests]);
    for (platform, dependency) in [(unix, "rustix"), (windows, "socket2")] {
        let there = manifest.split(platform).nth(1).unwrap().split("\n[").next().unwrap();
        assert_eq!(there.matches(" = {").count(), 1, "{there}");
        assert!(there.contains(&format!("\n{dependency} = ")), "{there}");
    }
}
