//! `redlatch release`: releases a lock by its token, or removes that of another client by force.

use super::arguments::{NodeArguments, ReleaseArguments};
use super::exit::{self, Failure};
use super::{inspect, output, settings, token};
use redlatch::{Inspection, LockState};
use serde_json::json;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;

pub(crate) fn release(nodes: &NodeArguments, arguments: &ReleaseArguments) -> Result<u8, Failure> {
    let name = &arguments.name;
    let is_released = if arguments.force {
        by_force(nodes, arguments)?
    } else {
        let token = token::read(arguments.token.as_deref())?;
        token::release(nodes, name, &arguments.also, &token)?;
        true
    };
    let text = match (arguments.json, is_released) {
        (true, _) => {
            json!({ "name": inspect::exact(name.as_bytes()), "released": is_released }).to_string()
        }
        (false, true) => format!("{}: released", inspect::shown(name.as_bytes())),
        (false, false) => format!("{}: nothing was released", inspect::shown(name.as_bytes())),
    };
    output::print(&format!("{text}\n"))?;
    Ok(if is_released {
        exit::SUCCESS
    } else {
        exit::HELD
    })
}

fn by_force(nodes: &NodeArguments, arguments: &ReleaseArguments) -> Result<bool, Failure> {
    let client = settings::client(nodes)?;
    let seen = client.inspect(arguments.name.as_bytes())?;
    // Only what was shown is removed, and nothing that another client has acquired since.
    let is_held = !matches!(seen.state, LockState::Free | LockState::Reserved);
    Ok(is_held && is_confirmed(arguments, &seen)? && client.force_release(&seen)?)
}

/// Asks on the terminal, unless the arguments say yes.
fn is_confirmed(arguments: &ReleaseArguments, seen: &Inspection) -> Result<bool, Failure> {
    if arguments.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() || !output::stderr_is_terminal() {
        return Err(Failure::usage(&"there is no terminal to ask on: use --yes"));
    }
    let consequence = if inspect::is_of_ensemble(seen) {
        "The holder works on until its client notices, within a seventh of its session timeout."
    } else {
        "The holder is not told, and works on while another client gets the lock."
    };
    let summary = inspect::summary(&arguments.name, seen);
    output::write_to_stderr(&format!("{summary}\n{consequence}\nRelease it? [y/N] "));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::system("stdin", &error))?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}
