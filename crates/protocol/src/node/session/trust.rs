//! Trust: when does a node's answer count?

mod order;
mod reign;

pub(super) use order::ReplyOrder;
pub(super) use reign::Group;

use super::Session;
use crate::engine::Request;
use crate::node::{Identity, NodeError};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The error of a reported uptime: the time of the start is truncated to whole seconds. A server
/// that started at 10.9 and is asked at 20.0 reports 10.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// A lower bound of a node's uptime. The default is that of a node of which nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeastUptime {
    /// When the node answered the greeting.
    pub(super) greeted_at: Time,
    /// The lower bound at that time.
    uptime: Duration,
}

impl LeastUptime {
    /// The lower bound for what is this old now.
    pub(super) fn aged(now: Time, age: Duration) -> Self {
        Self {
            greeted_at: now,
            uptime: age,
        }
    }

    /// The lower bound after a greeting with this identity. `before` is the identity of the
    /// previous greeting, and `heard_at` the time of the last reply before this greeting.
    pub(super) fn of(
        now: Time,
        identity: &Identity,
        before: Option<&Identity>,
        heard_at: Time,
    ) -> Self {
        // Without a reported uptime, the bound counts from this greeting.
        let said = identity
            .uptime
            .unwrap_or_default()
            .saturating_sub(UPTIME_GRAIN);
        let is_another = before.is_some_and(|before| {
            before.run_id.is_some() && identity.run_id.is_some() && before.run_id != identity.run_id
        });
        // If this is another server, it replaced the previous one after that one's last reply, so
        // its own uptime counts no further back: its clock may have been set, or it was a replica.
        let most = if is_another {
            now.since(heard_at)
        } else {
            Duration::MAX
        };
        Self {
            greeted_at: now,
            uptime: said.min(most),
        }
    }
}

impl Session {
    /// How long until the node's grants count. `None` if they count now.
    pub(super) fn quarantine_left(&self, now: Time) -> Option<Duration> {
        let LeastUptime { greeted_at, uptime } = self.server.least_uptime;
        let wanted = self.options.quarantine?;
        let uptime = || uptime.saturating_add(now.since(greeted_at));
        let left = wanted.saturating_sub(self.group.age(now).unwrap_or_else(uptime));
        (!left.is_zero()).then_some(left)
    }

    /// The error of an answer to this request that does not count yet.
    pub(in crate::node) fn quarantine(&self, now: Time, request: &Request) -> Option<NodeError> {
        let left = self
            .quarantine_left(now)
            .filter(|_| !request.counts_in_quarantine());
        left.map(|left| NodeError::Quarantined { left })
    }

    /// Why the replies of this node do not count, if it is the same server as an earlier node.
    pub(in crate::node) fn same_server(&self) -> Option<NodeError> {
        self.same_server
            .clone()
            .map(|url| NodeError::SameServer { url })
    }

    /// Does waiting not resolve this error? Two slots of a cluster that are on one server, and have
    /// one vote meanwhile, may part again.
    pub(in crate::node) fn is_lasting(&self, problem: &NodeError) -> bool {
        let may_part = self.options.is_slot() && matches!(problem, NodeError::SameServer { .. });
        problem.is_permanent() && !may_part
    }

    /// Is this node the same server as an earlier one, and stays it?
    pub(in crate::node) fn is_another_by_mistake(&self) -> bool {
        self.same_server()
            .is_some_and(|problem| self.is_lasting(&problem))
    }

    /// Sets the URL of the earlier node that is the same server, if there is one. Returns what
    /// [`same_server`](Self::same_server) was before.
    pub(in crate::node) fn set_same_server(&mut self, url: Option<Arc<str>>) -> Option<NodeError> {
        let before = std::mem::replace(&mut self.same_server, url);
        before.map(|url| NodeError::SameServer { url })
    }
}
