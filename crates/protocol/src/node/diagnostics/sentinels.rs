//! What Sentinels say about the group that they watch. Votes depend on none of it: it is for
//! warnings.

use super::{NodeStatus, NodeWarning, Role};
use crate::node::GroupOptions;
use crate::resp::Reply;
use std::time::Duration;

/// What one Sentinel has answered to `SENTINEL MASTER`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentinelAnswer {
    /// How many Sentinels it knows, itself included.
    pub sentinels: u32,
    /// How many must find that the master is down, before it is failed over.
    pub quorum: u32,
    /// How many replicas it knows, also if they are down.
    pub replicas: u32,
    /// For how long a master is silent before it is down.
    pub down_after: Duration,
}

impl SentinelAnswer {
    /// Reads names and values in turn. `None` if this is no such answer.
    pub fn read(reply: &Reply<'_>) -> Option<Self> {
        let (Reply::Array(list) | Reply::Map(list)) = reply else {
            return None;
        };
        let mut answer = Self::default();
        let mut elements = list.iter();
        while let (Some(Reply::Bulk(name)), Some(Reply::Bulk(value))) =
            (elements.next(), elements.next())
        {
            let number = || std::str::from_utf8(value).ok()?.parse::<u32>().ok();
            match name {
                b"num-other-sentinels" => answer.sentinels = number()?.saturating_add(1),
                b"quorum" => answer.quorum = number()?,
                b"num-slaves" => answer.replicas = number()?,
                b"down-after-milliseconds" => {
                    answer.down_after = Duration::from_millis(number()?.into());
                }
                _ => {}
            }
        }
        (answer.sentinels > 0).then_some(answer)
    }
}

/// What the Sentinels that a URL names have answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelAnswers {
    /// How many the URL names.
    pub named: usize,
    pub answers: Vec<SentinelAnswer>,
}

/// What about the Sentinels of this group breaks a promise, or would in a fault. `is_alone`: may no
/// failover of the group go unnoticed, because too few nodes are left?
pub(super) fn warnings(status: &NodeStatus, is_alone: bool) -> Vec<NodeWarning> {
    let (Some(SentinelAnswers { named, answers }), Some(options)) =
        (&status.sentinels, &status.group_options)
    else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    let silent = named - answers.len();
    if silent > 0 {
        let named = *named;
        warnings.push(NodeWarning::SentinelsSilent { silent, named });
    }
    // Of differing answers, the worst counts.
    let known = answers.iter().map(|it| it.sentinels).max().unwrap_or(0);
    let quorum = answers.iter().map(|it| it.quorum).min().unwrap_or(0);
    if !answers.is_empty() && (known < 3 || known % 2 == 0 || quorum <= known / 2) {
        warnings.push(NodeWarning::Sentinels { known, quorum });
    }
    let listed = answers.iter().map(|it| it.replicas).max().unwrap_or(0);
    let connected = status.role;
    let is_said = connected == Some(Role::Master { replicas: listed }) || answers.is_empty();
    let differs = options
        .replicas
        .filter(|named| *named != listed && !is_said);
    warnings.extend(differs.map(|named| NodeWarning::ReplicasListed { named, listed }));
    let GroupOptions { bound, max_ttl, .. } = **options;
    let down_after = answers
        .iter()
        .map(|it| it.down_after)
        .max()
        .unwrap_or_default();
    if is_alone && !answers.is_empty() && down_after.saturating_add(bound) >= max_ttl * 2 / 3 {
        warnings.push(NodeWarning::KeptLocksEnd {
            down_after,
            bound,
            max_ttl,
        });
    }
    warnings
}

#[cfg(test)]
mod tests;
