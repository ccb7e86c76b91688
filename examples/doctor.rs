//! Looks at the nodes and says what a crash of each would cost, and what breaks a promise.
//!
//! ```sh
//! cargo run --features embedded --example doctor
//! cargo run --features embedded --example doctor -- redis://a redis://b redis://c
//! REDLATCH_NODES=redis://a,redis://b,redis://c cargo run --features embedded --example doctor
//! ```
//!
//! Without nodes it starts three Redis-like nodes inside this process. It takes no lock and changes
//! nothing. With nodes of your own it ends with an error if one cannot be reached, or has a
//! warning: run it before a program is deployed, or now and then.
//!
//! What the warnings depend on besides the nodes are settings of the client: `restart_guard`,
//! `max_ttl` and `drift_factor`. This program has their defaults.

use redlatch::embedded::Nodes;
use redlatch::status::Role;
use redlatch::{LockClient, NodeStatus};
use std::error::Error;
use std::fmt::Debug;

/// A list of URLs with commas between them.
const VARIABLE: &str = "REDLATCH_NODES";

fn main() -> Result<(), Box<dyn Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    let client = if !urls.is_empty() {
        LockClient::new(urls)?
    } else if std::env::var_os(VARIABLE).is_some() {
        LockClient::builder().nodes_from_env(VARIABLE).build()?
    } else {
        let nodes = Nodes::start(3)?;
        return story(&nodes.urls());
    };
    match examine(&client) {
        0 => Ok(()),
        count => Err(format!("{count} findings").into()),
    }
}

/// Three nodes on one machine: a warning about all but the first.
pub(crate) fn story(urls: &[String]) -> Result<(), Box<dyn Error>> {
    let findings = examine(&LockClient::new(urls)?);
    say("These nodes are for trying things out: they run on one machine, and keep nothing.");
    if findings == urls.len() - 1 {
        Ok(())
    } else {
        Err(format!("{findings} findings").into())
    }
}

/// Prints what there is to say about each node. Returns how many of these things are wrong.
fn examine(client: &LockClient) -> usize {
    let nodes = client.nodes();
    nodes.iter().for_each(describe);
    let majority = nodes.len() / 2 + 1;
    say(&format!(
        "A lock needs {majority} of {} nodes.",
        nodes.len()
    ));
    if nodes.len() % 2 == 0 {
        say("   An even number tolerates no more failures than one node fewer.");
    }
    let is_down = |node: &&NodeStatus| !node.is_connected || node.last_error.is_some();
    let warnings: usize = nodes.iter().map(|node| node.warnings().len()).sum();
    nodes.iter().filter(is_down).count() + warnings
}

fn describe(node: &NodeStatus) {
    say(&node.url);
    if let Some(error) = &node.last_error {
        say(&format!("   ERROR: {error}"));
    }
    if !node.is_connected {
        return;
    }
    let server = node.server.as_deref();
    let version = node.version.as_deref();
    let server = server.unwrap_or("a server");
    let version = version.unwrap_or("of unknown version");
    let role = match node.role {
        Some(Role::Master { replicas }) => format!("a master with {replicas} replicas"),
        Some(Role::Replica) => "a replica".to_owned(),
        _ => "of unknown role".to_owned(),
    };
    say(&format!(
        "   {server} {version}, {role}, up for {}",
        known(node.uptime)
    ));
    let loss = node.persistence.crash_loss().map(|loss| loss.to_string());
    say(&format!(
        "   a crash costs {}",
        loss.unwrap_or("an unknown part of the data".to_owned())
    ));
    let memory = &node.memory;
    let policy = memory.policy.as_deref().unwrap_or("unknown");
    let used = known(memory.used);
    let max = known(memory.max);
    say(&format!(
        "   memory: {used} bytes used; maxmemory {max}, policy {policy}"
    ));
    let clock = node.clock.map(|clock| clock.to_string());
    say(&format!(
        "   clock: {}",
        clock.unwrap_or("unknown".to_owned())
    ));
    for warning in node.warnings() {
        say(&format!("   WARNING: {warning}"));
    }
}

fn known<T: Debug>(value: Option<T>) -> String {
    value.map_or("unknown".to_owned(), |value| format!("{value:.1?}"))
}

#[expect(clippy::print_stdout, reason = "this program reports on the terminal")]
fn say(line: &str) {
    println!("{line}");
}
