//! Since when a node has certainly kept what it was told, and what follows from that for its votes.
//!
//! A server that restarts without its data grants again what is still held. What it grants counts
//! only when it has been up for as long as any lock may live: then whatever it forgot has expired
//! everywhere else. A restart breaks the connection, so this is found out with each greeting.

use super::Session;
use crate::clock::Time;
use crate::node::identity::Identity;
use crate::node::node_error::NodeError;
use std::time::Duration;

/// By how much a server may have been up for less than it says: the time of its start is cut off to
/// whole seconds. Started at 10.9 and asked at 20.0, it says 10.
const UPTIME_GRAIN: Duration = Duration::from_secs(1);

/// For how long a node has been up at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastUptime {
    /// When it greeted.
    pub(super) greeted_at: Time,
    /// How long it had certainly been up then.
    uptime: Duration,
}

impl LeastUptime {
    /// Nothing is known of the node.
    pub(super) const NONE: Self = Self { greeted_at: Time::ZERO, uptime: Duration::ZERO };

    /// A node has greeted that says this of itself. `before` is what it said the last time, and
    /// `heard_at` when something was last heard of it then.
    pub(super) fn of(
        now: Time,
        identity: &Identity,
        before: Option<&Identity>,
        heard_at: Time,
    ) -> Self {
        // A server that does not say how long it has been up has been so since we know it at least.
        let said = identity.uptime.unwrap_or_default().saturating_sub(UPTIME_GRAIN);
        let is_another = before.is_some_and(|before| {
            before.run_id.is_some() && identity.run_id.is_some() && before.run_id != identity.run_id
        });
        // Another server than the one that was heard then took its place after that, whatever it
        // says: its clock may have been set, or it was a replica until now.
        let most = if is_another { now.since(heard_at) } else { Duration::MAX };
        Self { greeted_at: now, uptime: said.min(most) }
    }
}

impl Session {
    /// For how long the node's grants do not count yet. `None` if they do.
    pub(super) fn quarantine_left(&self, now: Time) -> Option<Duration> {
        let LeastUptime { greeted_at, uptime } = self.least_uptime;
        let wanted = self.options.quarantine?;
        let left = wanted.saturating_sub(uptime).saturating_sub(now.since(greeted_at));
        (!left.is_zero()).then_some(left)
    }

    /// Why a grant does not count yet, if it does not.
    pub(super) fn quarantine(&self, now: Time) -> Option<NodeError> {
        self.quarantine_left(now).map(|left| NodeError::Quarantined { left })
    }
}
