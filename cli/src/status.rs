//! `redlatch status`: the nodes.

use super::arguments::{NodeArguments, StatusArguments};
use super::exit::{self, Failure};
use super::inspect::seconds;
use super::table::{self, cell};
use super::{duration, ensemble, output, settings};
use redlatch::NodeStatus;
use redlatch::status::{ClockDifference, GroupStatus, Role};
use serde_json::{Value, json};
use std::time::Duration;

const WATCH: Duration = Duration::from_secs(1);

pub(crate) fn status(nodes: &NodeArguments, arguments: &StatusArguments) -> Result<u8, Failure> {
    let client = settings::client(nodes)?;
    output::watch(arguments.watch.then_some(WATCH), !arguments.json, || {
        let statuses = client.nodes();
        let text = if arguments.json {
            format!("{}\n", Value::Array(statuses.iter().map(to_json).collect()))
        } else {
            to_table(&statuses)
        };
        let up = statuses.iter().filter(|node| node.is_connected).count();
        let needed = ensemble::needed(&statuses);
        let failures: Vec<_> = statuses
            .iter()
            .map(|node| node.last_error.as_ref())
            .collect();
        let code = if up >= needed {
            exit::SUCCESS
        } else {
            exit::too_few(&failures, needed)
        };
        Ok((text, code))
    })
}

fn is_ensemble(statuses: &[NodeStatus]) -> bool {
    statuses.iter().any(|node| ensemble::is_member(&node.url))
}

fn to_table(statuses: &[NodeStatus]) -> String {
    let mut text = if is_ensemble(statuses) {
        server_table(statuses)
    } else {
        node_table(statuses)
    };
    for node in statuses {
        for warning in node.warnings() {
            text += &table::wrap(&format!("WARNING {}: {warning}", node.url), 4);
            text.push('\n');
        }
    }
    text
}

/// The servers of a ZooKeeper ensemble.
fn server_table(statuses: &[NodeStatus]) -> String {
    let mut rows = Vec::new();
    for node in statuses {
        rows.push(vec![
            node.url.to_string(),
            if node.is_connected { "yes" } else { "no" }.to_owned(),
            cell(node.role.and_then(role)),
            cell(version(node)),
            cell(node.zxid.map(zxid)),
            cell(node.round_trip.map(duration::show)),
            cell(node.last_error.as_ref().map(exit::words)),
        ]);
    }
    let headings = [
        "SERVER",
        "UP",
        "ROLE",
        "VERSION",
        "ZXID",
        "ROUND TRIP",
        "LAST ERROR",
    ];
    table::render(&headings, &rows)
}

fn node_table(statuses: &[NodeStatus]) -> String {
    // Without the queue: whether it works depends on the user's rights to keys that begin with a
    // lock's name, and there is none here.
    let mut headings = vec![
        "NODE",
        "UP",
        "VERSION",
        "UPTIME",
        "ROUND TRIP",
        "CLOCK",
        "QUARANTINE",
        "LAST ERROR",
    ];
    let mut rows = Vec::new();
    for node in statuses {
        rows.push(vec![
            node.url.to_string(),
            if node.is_connected { "yes" } else { "no" }.to_owned(),
            cell(version(node)),
            cell(node.uptime.map(duration::show)),
            cell(node.round_trip.map(duration::show)),
            cell(node.clock.map(clock_text)),
            cell(node.quarantine.map(duration::show)),
            cell(node.last_error.as_ref().map(exit::words)),
        ]);
    }
    if statuses.iter().any(|node| node.group.is_some()) {
        headings.insert(REIGN, "REIGN");
        for (row, node) in rows.iter_mut().zip(statuses) {
            row.insert(REIGN, cell(node.group.as_ref().map(reign_text)));
        }
    }
    table::render(&headings, &rows)
}

/// Before which column the reigns of groups are.
const REIGN: usize = 6;

/// For how long the reign of a group is known, or why it counts at once, or not at all.
pub(crate) fn reign_text(group: &GroupStatus) -> String {
    match group.age {
        Some(age) => duration::show(age),
        None if group.is_adopted => "adopted".to_owned(),
        None if group.is_proven => "proven".to_owned(),
        None => "not acknowledged".to_owned(),
    }
}

/// The same in a sentence, with an earlier reign that is known.
pub(crate) fn reign_words(group: &GroupStatus) -> String {
    let known = match group.age {
        Some(_) => format!("known for {}", reign_text(group)),
        None => reign_text(group),
    };
    let former = group.former.as_ref();
    let after = former.map_or(String::new(), |former| {
        format!(", after the reign {former}")
    });
    format!("reign {}, {known}{after}", group.reign)
}

fn role(role: Role) -> Option<&'static str> {
    Some(match role {
        Role::Master { .. } => "master",
        Role::Replica => "replica",
        Role::Standalone => "standalone",
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Observer => "observer",
        _ => return None,
    })
}

/// As ZooKeeper's own tools write it: the number of the election, and that of the transaction.
fn zxid(zxid: u64) -> String {
    format!("{zxid:#x}")
}

/// How far the node's clock is from ours, if that is more than the answer's way explains.
pub(crate) fn clock_text(difference: ClockDifference) -> String {
    match difference.is_ahead {
        _ if difference.by <= difference.error => "same".to_owned(),
        true => format!("{} ahead", duration::show(difference.by)),
        false => format!("{} behind", duration::show(difference.by)),
    }
}

fn version(node: &NodeStatus) -> Option<String> {
    let parts: Vec<&str> = [&node.server, &node.version]
        .into_iter()
        .flatten()
        .map(|s| &**s)
        .collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn to_json(node: &NodeStatus) -> Value {
    json!({
        "url": &*node.url,
        "up": node.is_connected,
        "server": node.server,
        "version": node.version,
        "role": node.role.and_then(role),
        "zxid": node.zxid.map(zxid),
        "uptime_seconds": node.uptime.map(|time| time.as_secs()),
        "round_trip_micros": node.round_trip.map(micros),
        "quarantine_seconds": node.quarantine.map(seconds),
        "group": node.group.as_ref().map(|group| json!({
            "reign": group.reign,
            "epoch": group.epoch,
            "former_reign": group.former,
            "adopted": group.is_adopted,
            "proven": group.is_proven,
            "age_seconds": group.age.map(seconds),
            "acknowledged": group.acknowledged,
        })),
        "clock_ahead_micros": node.clock.map(ahead),
        "clock_error_micros": node.clock.map(|clock| micros(clock.error)),
        "warnings": node.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "last_error": node.last_error.as_ref().map(exit::words),
    })
}

/// Below zero if the node's clock is behind ours.
fn ahead(clock: ClockDifference) -> i64 {
    let by = i64::try_from(micros(clock.by)).unwrap_or(i64::MAX);
    if clock.is_ahead { by } else { -by }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
