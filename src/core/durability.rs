//! Whether a node keeps what it has answered, so that it may vote on registers after a restart.

use crate::node::{CrashLoss, NodeStatus, Role};

/// Does a node keep what it has answered?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    Whole,
    /// It has, or lacks, this.
    Lacks(&'static str),
    /// It did not say, or the user may not ask.
    Unknown,
}

impl Durability {
    pub(super) fn of(status: &NodeStatus) -> Self {
        let (persistence, policy) = (status.persistence, status.memory.policy.as_deref());
        match (persistence.crash_loss(), status.role, policy) {
            (Some(loss), _, _) if loss != CrashLoss::Nothing => {
                Self::Lacks("no appendonly yes with appendfsync always")
            }
            (_, Some(Role::Replica), _) => Self::Lacks("a master, and is a replica"),
            (_, Some(Role::Master { replicas: 1.. }), _) => {
                Self::Lacks("replicas, one of which may take its place")
            }
            (_, _, Some(policy)) if policy.starts_with("allkeys") => {
                Self::Lacks("a maxmemory-policy that evicts any key")
            }
            (Some(_), Some(Role::Master { .. }), Some(_)) => Self::Whole,
            _ => Self::Unknown,
        }
    }

    /// Does it keep all? `None` if that is not known.
    pub(super) fn keeps(self) -> Option<bool> {
        match self {
            Self::Whole => Some(true),
            Self::Lacks(_) => Some(false),
            Self::Unknown => None,
        }
    }

    /// What it lacks.
    pub(super) fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Unknown => Some("settings that it does not tell"),
            Self::Lacks(what) => Some(what),
        }
    }
}
