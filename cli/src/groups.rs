//! `redlatch adopt` and `redlatch renew`: what a person knows of replicated groups, and their
//! servers do not.

use super::arguments::{GroupArguments, NodeArguments};
use super::exit::{self, Failure};
use super::status::reign_words;
use super::{duration, output, settings};
use redlatch::error::{NodeAnswer, NodeReport};
use redlatch::{LockClient, NodeKind, NodeStatus};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Adopt,
    Renew,
}

impl Change {
    /// What it does to a group, and what the person who orders it vouches for.
    fn consequence(self) -> &'static str {
        match self {
            Self::Adopt => {
                "adopt: the grants of these groups count at once, for all clients.\n\
                 You vouch that each of them is used for the first time, so that no lock may be \
                 held that it does not know. One of which an earlier reign is known refuses."
            }
            Self::Renew => {
                "renew: every vote of a client that is under way fails, and no new lock of these \
                 groups counts for max-ttl and failover_bound.\n\
                 Locks that are kept alive go on."
            }
        }
    }
}

/// Is this the URL of a node that is a replicated group?
pub(crate) fn is_group(url: &str) -> bool {
    NodeKind::of(url) == Some(NodeKind::Group)
}

pub(crate) fn change(
    mut nodes: NodeArguments,
    arguments: GroupArguments,
    change: Change,
) -> Result<u8, Failure> {
    nodes.node.extend(arguments.url);
    let client = settings::client(&nodes)?;
    if arguments.yes {
        carry_out(&client, change)
    } else {
        show(&client, change)
    }
}

fn show(client: &LockClient, change: Change) -> Result<u8, Failure> {
    let groups: Vec<_> = client.nodes().iter().filter_map(state).collect();
    if groups.is_empty() {
        return Err(no_group());
    }
    let text = change.consequence();
    output::print(&format!(
        "{}\n{text}\nNothing was changed: --yes does it.\n",
        groups.join("\n")
    ))?;
    Ok(exit::SUCCESS)
}

/// The state of a node, if it is a group.
fn state(node: &NodeStatus) -> Option<String> {
    let group = node.group.as_ref()?;
    let counts = node
        .quarantine
        .map_or("its grants count".to_owned(), |left| {
            format!(
                "its grants do not count for another {}",
                duration::show(left)
            )
        });
    Some(format!("{}: {}; {counts}", node.url, reign_words(group)))
}

fn carry_out(client: &LockClient, change: Change) -> Result<u8, Failure> {
    let statuses = client.nodes();
    let counts = |url: &str| {
        let of_node = statuses.iter().find(|status| *status.url == *url);
        of_node.is_some_and(|status| status.group.is_some() && status.quarantine.is_none())
    };
    let reports = match change {
        Change::Adopt => client.adopt_groups()?,
        Change::Renew => client.renew_groups()?,
    };
    if reports.is_empty() {
        return Err(no_group());
    }
    let mut is_done = true;
    let mut lines = String::new();
    for report in &reports {
        let needs_none =
            change == Change::Adopt && report.answer == NodeAnswer::Refused && counts(&report.url);
        let outcome = if needs_none {
            "not changed: its grants count already".to_owned()
        } else {
            outcome(report, change)
        };
        is_done &= needs_none || report.answer == NodeAnswer::Answered;
        lines += &format!("{}: {outcome}\n", report.url);
    }
    output::print(&lines)?;
    Ok(if is_done {
        exit::SUCCESS
    } else {
        exit::NO_QUORUM
    })
}

fn outcome(report: &NodeReport, change: Change) -> String {
    match (&report.answer, change, &report.former_reign) {
        (NodeAnswer::Answered, Change::Adopt, _) => "adopted".to_owned(),
        (NodeAnswer::Answered, Change::Renew, _) => "renewed".to_owned(),
        (NodeAnswer::Refused, Change::Adopt, Some(former)) => format!(
            "not changed: it was in use before, in the reign {former}, and a lock of that time may \
             still be held; wait for the end of the quarantine (redlatch status)"
        ),
        (NodeAnswer::Refused, ..) => "not changed: it has another master by now".to_owned(),
        (answer, ..) => format!("not changed: {answer}"),
    }
}

fn no_group() -> Failure {
    Failure::usage(&"no node is a replicated group that answers")
}
