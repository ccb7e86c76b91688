//! What a plain warm `lock` and `drop` enters: the files, and how many functions of each.
//!
//! A program runs few pairs and many, in a build that counts how often each function is entered.
//! What was entered once more for each pair more is part of a pair.

use super::{assert_none, root};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::program::cargo;
use support::servers::Servers;

const FEW: u64 = 50;
const MANY: u64 = 1_050;

/// By how many functions runs differ: some are entered if a node answers late.
const NOISE: usize = 8;

/// How many files may be written down.
const FILES_MAX: usize = 72;

/// How often each function was entered, by its file and its place there.
type Entered = BTreeMap<(String, u64), u64>;

#[test]
#[ignore = "builds the library once more; ./check runs it"]
fn a_plain_warm_pair_enters_no_more_than_is_written_down() {
    let path = root().join("tests/tidy/warm_pair.txt");
    let written = fs::read_to_string(&path).unwrap_or_default();
    let servers = Servers::start(3);
    let program = build();
    let few = enter(&program, FEW, &servers);
    let many = enter(&program, MANY, &servers);
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for ((file, place), count) in &many {
        let before = few
            .get(&(file.clone(), *place))
            .copied()
            .unwrap_or_default();
        // What only some of the rounds enter, as when a node answers late, is left out.
        if count.saturating_sub(before) >= (MANY - FEW) * 9 / 10 {
            *files.entry(file).or_default() += 1;
        }
    }
    assert!(
        files.contains_key("src/client.rs"),
        "nothing was counted: {files:?}"
    );
    let functions: usize = files.values().sum();
    println!("{} files, {functions} functions", files.len());
    if env::var_os("REDLATCH_WRITE").is_some() {
        let lines = files
            .iter()
            .map(|(file, count)| format!("{count} {file}\n"));
        fs::write(path, lines.collect::<String>()).unwrap();
        return;
    }
    let allowed = read(&written);
    let more = files.keys().filter(|file| !allowed.contains_key(*file));
    let more: Vec<String> = more.map(ToString::to_string).collect();
    assert_none(
        "a pair enters more files; REDLATCH_WRITE=1 writes them down",
        &more,
    );
    let fewer: Vec<_> = allowed
        .keys()
        .filter(|file| !files.contains_key(*file))
        .collect();
    assert!(
        fewer.is_empty(),
        "it enters fewer files, write that down: {fewer:?}"
    );
    let written: usize = allowed.values().sum();
    let is_near = functions.abs_diff(written) <= NOISE;
    assert!(
        is_near,
        "{functions} functions and not {written}: {files:?}, {allowed:?}"
    );
}

/// The files that are written down, with how many functions of each.
fn read(written: &str) -> BTreeMap<&str, usize> {
    written
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(count, file)| (file, count.parse().unwrap()))
        .collect()
}

#[test]
fn few_files_are_written_down() {
    let two = read("3 src/client.rs\n1 src/clock.rs\n");
    assert_eq!(
        two,
        BTreeMap::from([("src/client.rs", 3), ("src/clock.rs", 1)])
    );
    let written = fs::read_to_string(root().join("tests/tidy/warm_pair.txt")).unwrap();
    let files = read(&written);
    assert!(files.contains_key("src/client.rs"), "{files:?}");
    assert!(files.len() <= FILES_MAX, "{} of {FILES_MAX}", files.len());
}

fn target() -> PathBuf {
    root().join("target/coverage")
}

/// Builds the program so that it counts.
fn build() -> PathBuf {
    let mut cargo = cargo();
    cargo.args([
        "build",
        "--package",
        "redlatch-warm-pair",
        "--locked",
        "--target-dir",
    ]);
    cargo.arg(target()).current_dir(root());
    cargo
        .env("RUSTFLAGS", "-C instrument-coverage")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    assert!(cargo.status().unwrap().success());
    target().join("debug/warm_pair")
}

/// Runs it, and reads what it has counted.
fn enter(program: &Path, pairs: u64, servers: &Servers) -> Entered {
    let raw = target().join("pairs.profraw");
    let merged = target().join("pairs.profdata");
    let mut run = Command::new(program);
    run.arg(pairs.to_string())
        .args(servers.urls())
        .env("LLVM_PROFILE_FILE", &raw);
    assert!(run.status().unwrap().success());
    let mut merge = Command::new(tool("llvm-profdata"));
    assert!(
        merge
            .args(["merge", "-o"])
            .args([&merged, &raw])
            .status()
            .unwrap()
            .success()
    );
    let mut export = Command::new(tool("llvm-cov"));
    export
        .arg("export")
        .arg(program)
        .arg("--instr-profile")
        .arg(&merged);
    let exported = export.output().unwrap().stdout;
    let exported: serde_json::Value = serde_json::from_slice(&exported).unwrap();
    let mut entered = Entered::new();
    for function in exported["data"][0]["functions"].as_array().unwrap() {
        let file = Path::new(function["filenames"][0].as_str().unwrap());
        let Ok(file) = file.strip_prefix(root()) else {
            continue;
        };
        // A generic function has one place, however many types it is made for.
        let place = function["regions"][0][0].as_u64().unwrap() << 16
            | function["regions"][0][1].as_u64().unwrap();
        let file = file.to_str().unwrap().to_owned();
        *entered.entry((file, place)).or_default() += function["count"].as_u64().unwrap();
    }
    entered
}

/// A program of the component `llvm-tools`.
fn tool(name: &str) -> PathBuf {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .output()
        .unwrap();
    let libraries = PathBuf::from(String::from_utf8(libraries.stdout).unwrap().trim());
    let tool = libraries.parent().unwrap().join("bin").join(name);
    assert!(tool.exists(), "rustup component add llvm-tools");
    tool
}
