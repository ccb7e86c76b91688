//! Looks for the server that the tests need before anything else is compiled, and fetches one where
//! there is none. On a machine without one this says so at once, and not by the first test, minutes
//! later.

#[path = "support/server_choice.rs"]
#[allow(unreachable_pub, reason = "the tests have this file in a library")]
mod server_choice;

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// The names of servers in the table of `tests/servers/fetch`, the best first: the version that the
/// tests were written with, which takes apt, and two that take pip.
const FETCHED: [&str; 3] = ["redis-7.0", "valkey-9.0", "redis-6.2"];

fn main() {
    for variable in ["PATH", "REDLATCH_REDIS_SERVER", "REDLATCH_SERVERS"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=support/server_choice.rs");
    let named = env::var_os("REDLATCH_REDIS_SERVER");
    let is_there = || {
        let programs = server_choice::candidates(named.clone(), &server_choice::folders());
        programs.iter().any(|program| runs(program))
    };
    if is_there() {
        return;
    }
    // Another attempt the next time, whatever has changed by then.
    println!("cargo::rerun-if-changed=no-such-file");
    let fetches = named.is_none() && env::var_os("REDLATCH_SERVERS").is_none();
    if !(fetches && FETCHED.iter().any(|name| fetch(name)) && is_there()) {
        println!("cargo::warning={}", server_choice::ADVICE);
    }
}

fn runs(program: &Path) -> bool {
    let mut version = Command::new(program);
    version
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

fn fetch(name: &str) -> bool {
    println!("cargo::warning=no redis-server on PATH: tests/servers/fetch {name}");
    let mut fetch = Command::new("bash");
    fetch
        .args(["servers/fetch", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    fetch.status().is_ok_and(|status| status.success())
}
