//! kazoo, the library of Python for ZooKeeper, in a script that is a worker.

use super::address;
use std::process::Command;

pub const WORD: &str = "kazoo";

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/peers/kazoo_worker.py");

/// Another Python than the system's, such as that of a virtual environment with kazoo.
const PYTHON: &str = "REDLATCH_VERSUS_PYTHON";

pub fn script(url: &str) -> Command {
    let mut command = python();
    command.args([SCRIPT, address(url)]);
    command
}

/// Whether the script can run; if not, this says why not.
pub fn is_installed() -> bool {
    let done = python().args(["-c", "import kazoo"]).output();
    let is_there = done.is_ok_and(|output| output.status.success());
    if !is_there {
        println!(
            "kazoo is not measured: it is not installed (Debian: python3-kazoo; PyPI: kazoo, and \
             {PYTHON}=venv/bin/python)\n"
        );
    }
    is_there
}

fn python() -> Command {
    Command::new(std::env::var_os(PYTHON).unwrap_or_else(|| "python3".into()))
}
