//! The servers of this machine.

use std::env;
use std::path::PathBuf;

use support::server_choice::{NAMES, fetched, folders};
use support::server_program::ServerProgram;

/// The script that fetches servers, with the table of those that can be had.
const FETCH: &str = include_str!("../../servers/fetch");

/// All servers that are there, each version once, by name and version.
pub(crate) fn programs() -> Vec<ServerProgram> {
    let named = env::var_os("REDLATCH_REDIS_SERVER").map(PathBuf::from);
    let mut paths: Vec<PathBuf> = named.into_iter().collect();
    paths.extend(NAMES.map(PathBuf::from));
    paths.extend(fetched(&folders()));
    let mut found: Vec<ServerProgram> = Vec::new();
    for program in paths.iter().filter_map(|path| ServerProgram::at(path).ok()) {
        let is_known = |other: &ServerProgram| {
            (other.name(), other.version()) == (program.name(), program.version())
        };
        if !found.iter().any(is_known) {
            found.push(program);
        }
    }
    found.sort_by_key(|program| (program.name().to_owned(), numbers(program.version())));
    found
}

fn numbers(version: &str) -> Vec<u64> {
    version
        .split('.')
        .map(|number| number.parse().unwrap_or(0))
        .collect()
}

/// The names in the table of `fetch` for which no server of that version is there.
pub(crate) fn missing(found: &[ServerProgram]) -> Vec<String> {
    let table = FETCH
        .split("TABLE'\n")
        .nth(1)
        .and_then(|rest| rest.split("\nTABLE").next());
    let rows = table.expect("fetch has a table").lines();
    let names = rows.map(|row| row.split_whitespace().nth(1).expect("a row has a name"));
    let is_missing = |name: &&str| {
        let (server, version) = name.split_once('-').expect("a name has a version");
        let is_it = |program: &ServerProgram| {
            let path = program.path().to_string_lossy();
            program.name() == server && program.version().starts_with(&format!("{version}."))
                || path.contains(&format!("/{name}/"))
        };
        !found.iter().any(is_it)
    };
    names.filter(is_missing).map(str::to_owned).collect()
}

#[test]
fn the_table_of_the_script_is_read() {
    let all = missing(&[]);
    assert!(
        all.iter().any(|name| name == "redis-7.0") && all.len() > 10,
        "{all:?}"
    );
}
