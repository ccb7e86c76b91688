//! Settings about waiting for a lock that other clients hold.

use super::Builder;
use crate::engine::{Ttl, WAITER_LEASE};
use crate::error::ConfigError;
use std::time::Duration;

/// The limits of the time for which a waiter may be silent.
const WAITER_LEASE_MIN: Duration = Duration::from_millis(100);
const WAITER_LEASE_MAX: Duration = Duration::from_secs(60);

/// How many rounds fit into that time by default, and at least: a waiter whose renewal takes a
/// whole round keeps its place.
const ROUNDS: u32 = 4;
const ROUNDS_MIN: u32 = 2;

impl Builder {
    /// Whether a call that waits for a lock stands in a queue that the nodes keep. By default it
    /// does: clients are served in the order in which they began to wait, and a release wakes the
    /// next one.
    ///
    /// Without the queue, a waiting call asks the nodes again after random
    /// [pauses](Self::retry), and whoever asks first after a release has the lock. Clients with and
    /// without the queue exclude each other; while any client waits in the queue, those without it
    /// do not get the lock. A call that does not wait never queues, whatever this says. The same
    /// happens on a single node that lacks what the queue needs; see
    /// [`QueueSupport`](crate::QueueSupport). Without it, [readers](crate::LockRequest::shared) can
    /// keep a writer out for as long as they overlap.
    ///
    /// On ZooKeeper every call that waits stands in the queue, and `false` is an error.
    pub fn queue(mut self, queue: bool) -> Self {
        self.queue = queue;
        self
    }

    /// How long a waiter in front of the nodes' queue may be silent, before its entry expires:
    /// 100 ms to 60 s, and at least two [`node_timeout`](Self::node_timeout). By default 1.5 s, or
    /// four times `node_timeout` if that is more.
    ///
    /// It is what up to sixteen dead waiters in a row cost the others in all, if the nodes do not
    /// hear of their death, because a machine was frozen for instance; more of them cost as much
    /// again for every eight, up to ten times. A waiter renews its place after two thirds of this
    /// time, so by default once a second; from the ninth place on less often. A shorter time costs
    /// more commands. It concerns the entries of this client only.
    ///
    /// On ZooKeeper it is an error: a waiter keeps its place for as long as its
    /// [session](Self#method.session_timeout) lives.
    pub fn waiter_lease(mut self, lease: Duration) -> Self {
        self.waiter_lease = Some(lease);
        self
    }

    pub(super) fn check_waiter_lease(
        &self,
        node_timeout: Duration,
    ) -> Result<Option<Ttl>, ConfigError> {
        let default = WAITER_LEASE.max(node_timeout.saturating_mul(ROUNDS));
        let lease = self.waiter_lease.unwrap_or(default);
        let least = WAITER_LEASE_MIN.max(node_timeout.saturating_mul(ROUNDS_MIN));
        let is_valid = lease >= least && lease <= WAITER_LEASE_MAX.max(default);
        if !is_valid {
            let most = WAITER_LEASE_MAX.max(default);
            let reason = format!("{lease:?} is not between {least:?} and {most:?}");
            return Err(ConfigError::Setting { name: "waiter_lease", reason });
        }
        Ok(Ttl::from_duration(lease))
    }
}
