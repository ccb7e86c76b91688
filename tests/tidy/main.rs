//! The project's rules that a compiler does not check: the dependencies between layers, the length
//! of files, functions and lines, and that each file says what it is for.

#![expect(
    clippy::unwrap_used,
    reason = "a file of ours that cannot be read fails the test"
)]

mod command;
mod density;
mod dependencies;
mod pages;
mod programs;
mod public_api;
mod readme;
mod retry;
mod warm_pair;

use std::fs;
use std::path::{Path, PathBuf};

/// A file of this repository, in which comments, tests and code are distinguished.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// The lines before the unit tests.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines
            .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
            .map(|(n, line)| (n + 1, line))
    }

    /// The lines before the unit tests, without comments.
    fn statements(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Is it in this module of the crate, or of one of the pure crates?
    fn is_in(&self, module: &str) -> bool {
        // A crate has another name than the module that uses it.
        let path = self
            .path
            .replace("crates/registers/src", "crates/redlatch_registers")
            .replace("crates/zookeeper/src", "crates/redlatch_zookeeper");
        let folders = ["src/", "crates/protocol/src/", "crates/"];
        let file = folders
            .iter()
            .find_map(|folder| path.strip_prefix(folder))
            .unwrap();
        file == format!("{module}.rs") || file.starts_with(&format!("{module}/"))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// All files below `folder` with this ending.
fn files(folder: &str, ending: &str) -> Vec<Source> {
    let mut folders = vec![root().join(folder)];
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let is_output = path.ends_with("target") || path.ends_with("artifacts");
            if path.is_dir() && !is_output {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    assert!(!paths.is_empty(), "no .{ending} files in {folder}");
    let source = |path: PathBuf| Source {
        text: fs::read_to_string(&path).unwrap(),
        path: path
            .strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned(),
    };
    paths.into_iter().map(source).collect()
}

/// The files of the library, with those of the pure crates.
fn library() -> Vec<Source> {
    ["src", "crates"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .collect()
}

/// The folders with code of ours.
const FOLDERS: [&str; 8] = [
    "src", "crates", "bindings", "cli", "tests", "examples", "fuzz", "benches",
];

/// Fails with a list of the broken rules, if there are any.
fn assert_none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

/// The places of `words` in the statements of files for which `applies` is true.
fn mentions(words: &[&str], applies: impl Fn(&Source) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for source in library().iter().filter(|source| applies(source)) {
        for (number, line) in source.statements() {
            for word in words.iter().filter(|word| line.contains(*word)) {
                found.push(format!("{}:{number}: {word}", source.path));
            }
        }
    }
    found
}

#[test]
fn only_net_names_sockets() {
    // The embedded nodes are servers with sockets of their own.
    let may = [
        "crates/embedded/src/server.rs",
        "crates/embedded/src/nodes.rs",
        "crates/embedded/src/ensemble/server.rs",
    ];
    let words = [
        "mio::",
        "std::net",
        "std::os::unix::net",
        "rustix::net",
        "socket2",
    ];
    let found = mentions(&words, |source| {
        !source.is_in("net") && !may.contains(&&*source.path)
    });
    assert_none("only src/net may name mio or std::net", &found);
}

#[test]
fn only_net_and_the_settings_name_rustls() {
    let words = [
        "rustls::",
        "rustls_native_certs::",
        "webpki_roots::",
        "rustls {",
    ];
    let found = mentions(&words, |source| {
        !source.is_in("net") && !source.is_in("config/tls")
    });
    assert_none("only src/net and src/config/tls.rs may name rustls", &found);
}

#[test]
fn only_the_clock_reads_a_clock() {
    let words = [
        "Instant::now",
        "SystemTime",
        "clock_gettime",
        "rustix::time",
    ];
    // The embedded servers have one of their own.
    let may = ["src/clock.rs", "crates/embedded/src/clock.rs"];
    let found = mentions(&words, |source| !may.contains(&&*source.path));
    assert_none("only src/clock.rs may read a clock", &found);
    let pure = [
        "engine",
        "inspect",
        "node",
        "redlatch_registers",
        "redlatch_zookeeper",
        "resp",
        "time",
    ];
    let found = mentions(&["clock::now", "clock::at", "now()"], |source| {
        pure.iter().any(|layer| source.is_in(layer))
    });
    assert_none("the pure layers get the time as an argument", &found);
}

#[test]
fn entropy_is_drawn_in_one_place() {
    // The embedded nodes draw random run ids.
    let may = [
        "src/entropy.rs",
        "crates/embedded/src/nodes.rs",
        "crates/embedded/src/server.rs",
    ];
    let words = ["getrandom", "RandomState", "thread_rng"];
    let found = mentions(&words, |source| !may.contains(&&*source.path));
    assert_none("only src/entropy.rs may draw entropy", &found);
}

/// The modules of the crate and of the pure ones, from the bottom up, each with those that it may
/// import. A module imports only from rows above its own, so no two can import each other.
const LAYERS: [(&str, &str); 36] = [
    ("callback", ""),
    ("time", ""),
    ("clock", "time"),
    ("glob", ""),
    ("guide", ""),
    ("owner_process", ""),
    ("resp", ""),
    ("texts", ""),
    ("write_buffer", ""),
    ("engine", "resp time"),
    ("entropy", "engine"),
    ("fencing", "engine"),
    ("node", "engine resp time write_buffer"),
    ("name", "node"),
    ("redlatch_registers", "engine node resp"),
    ("redlatch_zookeeper", "engine node time write_buffer"),
    ("node_url", "node redlatch_zookeeper texts"),
    ("inspect", "clock engine name node resp"),
    (
        "embedded",
        "clock engine glob inspect node redlatch_registers redlatch_zookeeper resp time",
    ),
    (
        "error",
        "engine fencing inspect name node node_url redlatch_registers resp texts",
    ),
    ("net", "clock engine node node_url resp redlatch_zookeeper"),
    ("event", "engine error inspect name net node owner_process"),
    ("bridge", "engine error event inspect name node"),
    ("cancel_token", "owner_process"),
    ("wait_queue", "cancel_token clock engine owner_process"),
    (
        "watchdog",
        "callback clock engine error net owner_process time wait_queue",
    ),
    ("driver", "clock engine error net node owner_process"),
    (
        "config",
        "bridge clock engine error event name net node_url redlatch_zookeeper wait_queue",
    ),
    (
        "backend",
        "cancel_token clock config driver engine error event inspect name net node owner_process \
         redlatch_registers wait_queue watchdog",
    ),
    (
        "redlock",
        "backend clock config driver engine entropy error event inspect net node node_url \
         owner_process redlatch_registers wait_queue watchdog",
    ),
    (
        "zookeeper",
        "backend clock config driver engine entropy error event glob inspect net node \
         owner_process redlatch_zookeeper wait_queue watchdog",
    ),
    (
        "core",
        "backend cancel_token clock config engine entropy error event inspect name owner_process \
         redlock wait_queue watchdog zookeeper",
    ),
    ("pending", "callback core driver error"),
    (
        "guard",
        "backend callback clock core driver engine entropy error event fencing name node pending \
         wait_queue watchdog",
    ),
    (
        "client",
        "backend cancel_token clock config core driver engine entropy error event fencing guard \
         inspect name node pending wait_queue watchdog",
    ),
    (
        "registers",
        "backend client clock config core engine entropy error event fencing guard inspect name \
         node node_url redlatch_registers",
    ),
];

#[test]
fn the_rooms_of_locks_know_no_registers() {
    let rooms = ["client", "core", "guard", "wait_queue", "watchdog"];
    let found = mentions(&["feature = \"registers\""], |source| {
        rooms.iter().any(|room| source.is_in(room))
    });
    assert_none("what registers add is in src/registers", &found);
}

/// The names that follow the root of a crate of ours in this line.
fn imports<'a>(line: &'a str, roots: &'static [&'static str]) -> impl Iterator<Item = &'a str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    roots
        .iter()
        .flat_map(|root| line.split(root).skip(1))
        .map(move |rest| {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            &rest[..end]
        })
}

#[test]
fn each_module_imports_only_modules_below_it() {
    for (index, (layer, may_import)) in LAYERS.iter().enumerate() {
        for below in may_import.split_whitespace() {
            let is_above = LAYERS[..index].iter().any(|(other, _)| *other == below);
            assert!(
                is_above,
                "{layer} may import {below}, which must stand above it in the table"
            );
        }
    }
    let mut broken = Vec::new();
    for source in library()
        .iter()
        .filter(|source| !source.path.ends_with("src/lib.rs"))
    {
        let Some((layer, may_import)) = LAYERS.iter().find(|(layer, _)| source.is_in(layer)) else {
            broken.push(format!("{}: its module is not in the table", source.path));
            continue;
        };
        // Each of the other crates is one module.
        let is_one =
            source.path.starts_with("crates/") && !source.path.starts_with("crates/protocol/");
        let roots: &[&str] = match is_one {
            true => &["redlatch_protocol::"],
            false => &["crate::", "redlatch_protocol::"],
        };
        for (number, line) in source.statements() {
            let others = ["redlatch_registers", "redlatch_zookeeper"];
            let others = others
                .into_iter()
                .filter(|it| line.contains(&format!("{it}::")));
            // An import from the crate's root, as `crate::{...}`, has no name of a module.
            let may = |module: &str| module == *layer || may_import.split(' ').any(|m| m == module);
            for module in imports(line, roots)
                .chain(others)
                .filter(|module| !may(module))
            {
                broken.push(format!("{}:{number}: crate::{module}", source.path));
            }
        }
    }
    assert_none("a module imports only what the table lists for it", &broken);
}

#[test]
fn every_file_says_what_it_is_for_and_has_at_most_500_lines() {
    let mut broken = Vec::new();
    for source in FOLDERS.iter().flat_map(|folder| files(folder, "rs")) {
        let says = source.text.lines().any(|line| line.starts_with("//! "));
        if !says {
            broken.push(format!("{}: no prose at the top", source.path));
        }
        let length = source.code().count();
        if length > 500 {
            broken.push(format!("{}: {length} lines before its tests", source.path));
        }
        if source.path.ends_with("utils.rs") || source.path.ends_with("helpers.rs") {
            broken.push(format!("{}: not a noun that says anything", source.path));
        }
    }
    assert_none(
        "a file has at most 500 lines and opens with what it is for",
        &broken,
    );
}

#[test]
fn lines_have_at_most_a_hundred_columns() {
    let mut broken = Vec::new();
    let scenarios = files("crates/protocol/src/node/session/scenarios", "txt");
    for source in FOLDERS
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .chain(scenarios)
    {
        for (index, line) in source.text.lines().enumerate() {
            if line.chars().count() > 100 {
                broken.push(format!("{}:{}", source.path, index + 1));
            }
        }
    }
    assert_none("a line has at most 100 columns", &broken);
}

/// Removes the innermost function that began at this column.
fn pop_at(open: &mut Vec<(usize, usize)>, column: usize) -> Option<usize> {
    let (_, start) = *open.last().filter(|(begun, _)| *begun == column)?;
    open.pop();
    Some(start)
}

#[test]
fn functions_have_at_most_seventy_lines() {
    let mut broken = Vec::new();
    for source in FOLDERS.iter().flat_map(|folder| files(folder, "rs")) {
        // rustfmt puts the end of a function in the column of its beginning.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (index, line) in source.text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let is_function = line
                .split("//")
                .next()
                .unwrap_or_default()
                .split(' ')
                .any(|w| w == "fn");
            if is_function && !line.trim_end().ends_with([';', '}']) {
                open.push((indent, index));
            }
            if line.trim() == "}" {
                while let Some(start) = pop_at(&mut open, indent) {
                    if index - start + 1 > 70 {
                        broken.push(format!("{}:{}", source.path, start + 1));
                    }
                }
            }
        }
    }
    assert_none("a function has at most 70 lines", &broken);
}

#[test]
fn nothing_newer_than_the_declared_rust_is_used() {
    // Clippy checks the standard library against `rust-version`, but not the language: `if let`
    // chains came with 1.88.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(
        manifest.contains("rust-version = \"1.85\""),
        "this test is about 1.85"
    );
    let mut broken = Vec::new();
    for source in ["src", "crates", "cli/src", "examples"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
    {
        for (number, line) in source.statements() {
            let is_chain = line.contains("&& let ") || line.contains("|| let ");
            if is_chain && !line.contains("= \"") {
                broken.push(format!("{}:{number}", source.path));
            }
        }
    }
    assert_none("no let-chains before Rust 1.88", &broken);
}
