//! What a session knows about the node's server, over all connections to it.

use super::least_uptime::LeastUptime;
use crate::clock::Time;
use crate::node::former::FormerConnections;
use crate::node::identity::Identity;

/// The server that answered last.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) identity: Option<Identity>,
    pub(super) least_uptime: LeastUptime,
    /// Earlier connections, which may still deliver what was written on them.
    pub(super) former: FormerConnections,
}

impl Server {
    /// Nothing is known yet.
    pub(super) fn unknown() -> Self {
        let former = FormerConnections::default();
        Self { identity: None, least_uptime: LeastUptime::NONE, former }
    }

    /// A server has introduced itself. The one before was heard last at `heard_at`.
    pub(super) fn greeted(&mut self, now: Time, identity: Identity, heard_at: Time) {
        let heard_at = heard_at.max(self.least_uptime.greeted_at);
        self.least_uptime = LeastUptime::of(now, &identity, self.identity.as_ref(), heard_at);
        // A server that reports no `run_id` is assumed to be the same as before.
        let before = self.identity.take().and_then(|identity| identity.run_id);
        self.identity = Some(Identity { run_id: identity.run_id.clone().or(before), ..identity });
    }
}
