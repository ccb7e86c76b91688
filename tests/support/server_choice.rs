//! Which server program the tests run: the build script looks for it before anything is compiled,
//! and each test program then.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The programs that are looked for on `PATH`, and in the folders of fetched servers.
pub const NAMES: [&str; 4] = [
    "redis-server",
    "valkey-server",
    "redict-server",
    "keydb-server",
];

/// What to do where there is none.
pub const ADVICE: &str = "these tests need a real server: install one (Debian and Ubuntu: apt-get \
                          install redis-server), or name one in REDLATCH_REDIS_SERVER";

/// The folders with one folder for each fetched server: those of `REDLATCH_SERVERS`, or else
/// `target/servers`, where `tests/servers/fetch` puts them.
pub fn folders() -> Vec<PathBuf> {
    match env::var_os("REDLATCH_SERVERS") {
        Some(folders) => env::split_paths(&folders).collect(),
        None => vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/servers")],
    }
}

/// The programs below these folders, in the order of their names.
pub fn fetched(folders: &[PathBuf]) -> Vec<PathBuf> {
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten();
    let mut inner: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    inner.sort();
    let programs = inner
        .iter()
        .flat_map(|inner| NAMES.map(|name| inner.join(name)));
    programs.filter(|program| program.exists()).collect()
}

/// The programs that may be the tested one, the best first. A program that is named is the only
/// one: nobody is to test another server than the one that they asked for.
pub fn candidates(named: Option<OsString>, folders: &[PathBuf]) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![PathBuf::from(named)];
    }
    // The version that the tests were written with, and others from the newest to the oldest.
    let mut fetched = fetched(folders);
    fetched.reverse();
    fetched.sort_by_key(|program| !program.to_string_lossy().contains("/redis-7.0/"));
    [PathBuf::from(NAMES[0]), PathBuf::from(NAMES[1])]
        .into_iter()
        .chain(fetched)
        .collect()
}
