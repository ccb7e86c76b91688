//! The time for which a node has certainly kept its data, and what it means for its votes.
//!
//! A server that restarts without its data grants locks that are still held. Its grants count only
//! when it has been up for as long as the longest ttl: then every lock that it lost has expired on
//! the other nodes too. A restart breaks the connection, so each greeting checks the uptime.

use super::Session;
use crate::clock::Time;
use crate::node::identity::Identity;
use crate::node::node_error::NodeError;
use std::time::Duration;

/// The error of a reported uptime: the time of the start is truncated to whole seconds. A server
/// that started at 10.9 and is asked at 20.0 reports 10.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// A lower bound of a node's uptime.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastUptime {
    /// When the node answered the greeting.
    pub(super) greeted_at: Time,
    /// The lower bound at that time.
    uptime: Duration,
}

impl LeastUptime {
    /// Nothing is known of the node.
    pub(super) const NONE: Self = Self { greeted_at: Time::ZERO, uptime: Duration::ZERO };

    /// The lower bound after a greeting with this identity. `before` is the identity of the
    /// previous greeting, and `heard_at` the time of the last reply before this greeting.
    pub(super) fn of(
        now: Time,
        identity: &Identity,
        before: Option<&Identity>,
        heard_at: Time,
    ) -> Self {
        // Without a reported uptime, the bound counts from this greeting.
        let said = identity.uptime.unwrap_or_default().saturating_sub(UPTIME_GRAIN);
        let is_another = before.is_some_and(|before| {
            before.run_id.is_some() && identity.run_id.is_some() && before.run_id != identity.run_id
        });
        // If this is another server, it replaced the previous one after that one's last reply, so
        // its own uptime counts no further back: its clock may have been set, or it was a replica.
        let most = if is_another { now.since(heard_at) } else { Duration::MAX };
        Self { greeted_at: now, uptime: said.min(most) }
    }
}

impl Session {
    /// How long until the node's grants count. `None` if they count now.
    pub(super) fn quarantine_left(&self, now: Time) -> Option<Duration> {
        let LeastUptime { greeted_at, uptime } = self.server.least_uptime;
        let wanted = self.options.quarantine?;
        let left = wanted.saturating_sub(uptime).saturating_sub(now.since(greeted_at));
        (!left.is_zero()).then_some(left)
    }

    /// The error of a grant that does not count yet.
    pub(in crate::node) fn quarantine(&self, now: Time) -> Option<NodeError> {
        self.quarantine_left(now).map(|left| NodeError::Quarantined { left })
    }
}
