//! `redlatch doctor`: what about the nodes is wrong, or would be in a fault, and what to do.

pub(crate) mod arguments;
mod finding;
mod node;
mod rights;

use super::arguments::NodeArguments;
use super::exit::{self, Failure};
use super::registers::is_of_group;
use super::{ensemble, output, settings, table};
use arguments::DoctorArguments;
use finding::{Finding, Level};
use redlatch::NodeStatus;
use redlatch::status::RegisterMembership;
use serde_json::Value;

/// The checks that answer what was asked: they are shown also if all is well.
const ANSWERS: [&str; 2] = ["lock", "quorum"];

pub(crate) fn doctor(nodes: &NodeArguments, arguments: &DoctorArguments) -> Result<u8, Failure> {
    let (builder, node_timeout) = settings::builder_with_timeout(nodes)?;
    let client = builder.clone().build()?;
    let statuses = client.nodes();
    let mut findings = Vec::new();
    let rights = match &arguments.lock {
        Some(name) => rights::to_lock(&client, &builder.build()?, name),
        None => rights::to_read(&client, rights::UNUSED),
    };
    let is_group = keep_registers(&statuses);
    for status in &statuses {
        findings.extend(node::of(status, node_timeout, is_group));
        for finding in &rights {
            if finding.node.as_deref() == Some(&*status.url) {
                findings.push(finding.clone());
            }
        }
    }
    findings.extend(rights.into_iter().filter(|finding| finding.node.is_none()));
    let (quorum, code) = quorum(&statuses, &findings);
    findings.push(quorum);
    let text = if arguments.json {
        to_json(&findings)
    } else {
        to_text(&findings, arguments)
    };
    output::print(&text)?;
    let is_fine = findings.iter().all(|finding| finding.level == Level::Ok);
    Ok(if code == exit::SUCCESS && !is_fine {
        exit::FINDINGS
    } else {
        code
    })
}

/// Do the nodes keep registers? One is a member of the group, or was before a restart.
pub(crate) fn keep_registers(statuses: &[NodeStatus]) -> bool {
    statuses.iter().any(|node| match node.registers {
        Some(RegisterMembership::Member { .. }) => true,
        Some(RegisterMembership::NoVote(why)) => is_of_group(why),
        _ => false,
    })
}

/// Whether enough nodes grant locks, and the exit code for that.
fn quorum(statuses: &[NodeStatus], findings: &[Finding]) -> (Finding, u8) {
    let count = statuses.len();
    let is_ensemble = statuses.iter().any(|node| ensemble::is_member(&node.url));
    let needed = ensemble::needed(statuses);
    let mut sound = 0;
    let mut granting = 0;
    for node in statuses {
        let is_sound = findings
            .iter()
            .all(|it| it.level != Level::Error || it.node.as_deref() != Some(&*node.url));
        sound += usize::from(is_sound);
        granting += usize::from(is_sound && node.quarantine.is_none());
    }
    let about = format!("{granting} of {count} nodes grant locks, and a lock needs {needed}");
    let (level, hint, code) = if sound < needed {
        (Level::Error, "; mend the nodes above", exit::NO_QUORUM)
    } else if granting < needed {
        (
            Level::Error,
            "; wait for the end of the quarantine",
            exit::QUARANTINED,
        )
    } else if is_ensemble {
        (Level::Ok, "", exit::SUCCESS)
    } else if granting == needed && count > 1 {
        let hint = if count == 2 {
            ": each node that fails ends that; use three"
        } else {
            ": the next node that fails ends that"
        };
        (Level::Warning, hint, exit::SUCCESS)
    } else if count == 1 {
        (
            Level::Ok,
            ": if it fails, there are no locks",
            exit::SUCCESS,
        )
    } else if count % 2 == 0 {
        (
            Level::Ok,
            "; one node fewer would tolerate as many failures",
            exit::SUCCESS,
        )
    } else {
        (Level::Ok, "", exit::SUCCESS)
    };
    (
        Finding::of_all(level, "quorum", &format!("{about}{hint}")),
        code,
    )
}

fn to_json(findings: &[Finding]) -> String {
    format!(
        "{}\n",
        Value::Array(findings.iter().map(Finding::to_json).collect())
    )
}

fn to_text(findings: &[Finding], arguments: &DoctorArguments) -> String {
    let is_shown = |it: &&Finding| {
        let is_asked_for = arguments.verbose || ANSWERS.contains(&it.check);
        it.level != Level::Ok || is_asked_for
    };
    let rows: Vec<_> = findings
        .iter()
        .filter(is_shown)
        .map(Finding::to_row)
        .collect();
    table::render(&["LEVEL", "NODE", "CHECK", "FINDING"], &rows)
}
