//! `redlatch registers status`, `repair` and `trust`: the nodes that have a vote.

use super::arguments::{RepairArguments, StatusArguments, TrustArguments};
use super::print_line;
use crate::exit::{self, Failure};
use crate::output;
use crate::table::{self, cell};
use redlatch::status::{NoVote, RegisterMembership};
use redlatch::{LockClient, NodeStatus};
use serde_json::{Value, json};

pub(super) fn status(client: &LockClient, arguments: &StatusArguments) -> Result<u8, Failure> {
    // Fails on ZooKeeper, where the nodes have a status, but no votes.
    client.register("*")?;
    let nodes = client.nodes();
    let text = if arguments.json {
        let rows: Vec<Value> = nodes.iter().map(to_json).collect();
        let json = json!({ "epoch": epoch(&nodes), "votes": votes(&nodes), "nodes": rows });
        format!("{json}\n")
    } else {
        to_table(&nodes)
    };
    output::print(&text)?;
    Ok(code(&nodes))
}

/// As `redlatch status`, which fails without a majority that is up.
fn code(nodes: &[NodeStatus]) -> u8 {
    let majority = nodes.len() / 2 + 1;
    if votes(nodes) >= majority {
        return exit::SUCCESS;
    }
    let is_outside = |vote: &RegisterMembership| match vote {
        RegisterMembership::NoVote(why) => !is_of_group(*why),
        _ => false,
    };
    let known: Vec<_> = nodes.iter().filter_map(|node| node.registers).collect();
    let is_no_group = known.len() >= majority && known.iter().all(is_outside);
    if is_no_group {
        exit::NO_GROUP
    } else {
        exit::NO_QUORUM
    }
}

/// Is a node without a vote of a group that the other nodes show?
pub(crate) fn is_of_group(why: NoVote) -> bool {
    matches!(
        why,
        NoVote::Restarted | NoVote::RunNotTold | NoVote::Replaced
    )
}

fn votes(nodes: &[NodeStatus]) -> usize {
    nodes
        .iter()
        .filter(|node| node.registers.is_some_and(|vote| vote.is_member()))
        .count()
}

/// The number of the group's epoch, which is the same for all that vote.
fn epoch(nodes: &[NodeStatus]) -> Option<u64> {
    nodes.iter().find_map(|node| match node.registers {
        Some(RegisterMembership::Member { epoch, .. }) => Some(epoch),
        _ => None,
    })
}

fn to_table(nodes: &[NodeStatus]) -> String {
    let votes = votes(nodes);
    let count = nodes.len();
    let epoch = epoch(nodes)
        .map(|epoch| format!(" in epoch {epoch}"))
        .unwrap_or_default();
    let mut rows = Vec::new();
    for node in nodes {
        rows.push(vec![
            node.url.to_string(),
            cell(is_member(node).map(yes_or_no)),
            cell(is_durable(node).map(yes_or_no)),
            cell(why_not(node)),
        ]);
    }
    let table = table::render(&["NODE", "VOTE", "DURABLE", "WHY NOT"], &rows);
    format!("{votes} of {count} nodes have a vote{epoch}\n\n{table}")
}

fn to_json(node: &NodeStatus) -> Value {
    json!({
        "url": &*node.url,
        "up": node.is_connected,
        "vote": is_member(node),
        "durable": is_durable(node),
        "why_not": why_not(node),
    })
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn is_member(node: &NodeStatus) -> Option<bool> {
    node.registers.map(|vote| vote.is_member())
}

fn is_durable(node: &NodeStatus) -> Option<bool> {
    match node.registers {
        Some(RegisterMembership::Member { is_durable, .. }) => Some(is_durable),
        _ => None,
    }
}

/// Why the node has no vote, or why that is not known.
fn why_not(node: &NodeStatus) -> Option<String> {
    match node.registers {
        Some(RegisterMembership::NoVote(why)) => Some(why.to_string()),
        Some(_) => None,
        None => Some(no_answer(node)),
    }
}

fn no_answer(node: &NodeStatus) -> String {
    match &node.last_error {
        Some(error) => exit::words(error),
        None => "it may not be asked: the user needs EVALSHA and the keys".to_owned(),
    }
}

pub(super) fn repair(client: &LockClient, arguments: &RepairArguments) -> Result<u8, Failure> {
    let repaired = match &arguments.replace {
        Some(old) => client.registers().replace(old)?,
        None => client.registers().repair()?,
    };
    let nodes = client.nodes();
    let unknown: Vec<&NodeStatus> = nodes
        .iter()
        .filter(|node| node.registers.is_none())
        .collect();
    if arguments.json {
        let repaired: Vec<&str> = repaired.iter().map(|url| &**url).collect();
        let unknown: Vec<&str> = unknown.iter().map(|node| &*node.url).collect();
        return print_line(&json!({ "repaired": repaired, "unanswered": unknown }).to_string());
    }
    let mut lines: Vec<String> = repaired
        .iter()
        .map(|url| format!("{url}: it has got its vote"))
        .collect();
    if lines.is_empty() {
        let which = if unknown.is_empty() {
            "all nodes"
        } else {
            "the nodes that answer"
        };
        lines.push(format!("{which} have their votes"));
    }
    let unknown = unknown
        .iter()
        .map(|node| format!("{}: no answer: {}", node.url, no_answer(node)));
    lines.extend(unknown);
    print_line(&lines.join("\n"))
}

pub(super) fn trust(client: &LockClient, arguments: &TrustArguments) -> Result<u8, Failure> {
    client.registers().trust(&arguments.url)?;
    print_line(&match arguments.json {
        true => json!({ "trusted": true }).to_string(),
        false => "the node has its vote".to_owned(),
    })
}
