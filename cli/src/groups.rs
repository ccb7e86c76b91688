//! `redlatch adopt` and `redlatch renew`: what a person knows of replicated groups, and their
//! servers do not.

use super::arguments::{GroupArguments, NodeArguments};
use super::exit::{self, Failure};
use super::status::reign_text;
use super::{duration, output, settings};
use redlatch::error::NodeAnswer;
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
                 You vouch that none of them has forgotten a lock that may still be held: each is \
                 used for the first time, or was without locks for max-ttl. After a failover, a \
                 lock could be granted twice."
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
    if arguments.yes { carry_out(&client, change) } else { show(&client, change) }
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
    let counts = node.quarantine.map_or("its grants count".to_owned(), |left| {
        format!("its grants do not count for another {}", duration::show(left))
    });
    Some(format!("{}: reign {}, known for: {}; {counts}", node.url, group.reign, reign_text(group)))
}

fn carry_out(client: &LockClient, change: Change) -> Result<u8, Failure> {
    let reports = match change {
        Change::Adopt => client.adopt_groups()?,
        Change::Renew => client.renew_groups()?,
    };
    if reports.is_empty() {
        return Err(no_group());
    }
    let line = |answer: &NodeAnswer| match (answer, change) {
        (NodeAnswer::Answered, Change::Adopt) => "adopted".to_owned(),
        (NodeAnswer::Answered, Change::Renew) => "renewed".to_owned(),
        (NodeAnswer::Refused, _) => "not changed: it has another master by now".to_owned(),
        (answer, _) => format!("not changed: {answer}"),
    };
    let lines = reports.iter().map(|it| format!("{}: {}\n", it.url, line(&it.answer)));
    output::print(&lines.collect::<String>())?;
    let is_done = reports.iter().all(|it| it.answer == NodeAnswer::Answered);
    Ok(if is_done { exit::SUCCESS } else { exit::NO_QUORUM })
}

fn no_group() -> Failure {
    Failure::usage(&"no node is a replicated group that answers")
}
