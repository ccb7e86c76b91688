//! Whether a node keeps what it has answered, so that it may vote on registers after a restart.

use super::{CrashLoss, NodeStatus, Role};

/// Does a node keep what it has answered?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    Whole,
    Lacks(&'static str),
    /// It did not say, or the user may not ask.
    Unknown,
}

impl Durability {
    /// Of a node that has been examined.
    pub fn of(status: &NodeStatus) -> Self {
        let persistence = status.persistence;
        let policy = status.memory.policy.as_deref();
        match (persistence.crash_loss(), status.role, policy) {
            (Some(loss), _, _) if loss != CrashLoss::Nothing => {
                Self::Lacks("no appendonly yes with appendfsync always")
            }
            (_, Some(Role::Replica), _) => Self::Lacks("a master, and is a replica"),
            (_, Some(Role::Master { replicas: 1.. }), _) => {
                Self::Lacks("replicas, one of which may take its place")
            }
            _ if persistence.has_replicated == Some(true) => {
                Self::Lacks("had a replica, or been one, since it was started")
            }
            (_, _, Some(policy)) if policy.starts_with("allkeys") => {
                Self::Lacks("a maxmemory-policy that evicts any key")
            }
            (Some(_), Some(Role::Master { .. }), Some(_)) => Self::Whole,
            _ => Self::Unknown,
        }
    }

    /// Does it keep all? `None` if that is not known.
    pub fn keeps(self) -> Option<bool> {
        (self != Self::Unknown).then_some(self == Self::Whole)
    }

    pub fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Unknown => Some("settings that it does not tell"),
            Self::Lacks(what) => Some(what),
        }
    }
}
