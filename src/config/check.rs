//! The checks of the settings.

use super::names::KEY_PREFIX_MAX;
use super::{Builder, Settings, is_reserved};
use crate::engine::{Drift, Rules, TTL_LIMIT, Ttl};
use crate::error::ConfigError;
use std::sync::Arc;
use std::time::Duration;

/// The shortest first pause between two attempts. Below it, retrying is a tight loop.
const RETRY_BASE_MIN: Duration = Duration::from_micros(100);

/// The longest node timeout.
pub(super) const NODE_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// How long fencing counters live, unless locks may live for longer.
const FENCING_EXPIRY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Builder {
    pub(crate) fn check(self) -> Result<Settings, ConfigError> {
        let nodes = self.check_nodes()?;
        let Some(drift) = Drift::from_factor(self.drift_factor) else {
            let reason =
                format!("{} is not between 0 and {}", self.drift_factor, Drift::FACTOR_MAX);
            return Err(ConfigError::Setting { name: "drift_factor", reason });
        };
        let mut rules = Rules::new(nodes.votes(), drift);
        rules.node_timeout = self.node_timeout.unwrap_or_else(|| nodes.default_node_timeout());
        rules.min_validity = self.min_validity;
        (rules.retry_base, rules.retry_cap) = self.retry;
        rules.hold_max = self.max_hold;
        rules.waiter_lease = self.check_waiter_lease(rules.node_timeout)?.filter(|_| self.queue);
        self.check_times(&rules)?;
        self.check_names()?;
        let connecting = self.connections.check(&nodes, rules.node_timeout)?;
        rules.connect_timeout = connecting.timeout;
        let fencing_expiry = self.check_fencing_expiry()?;
        Ok(Settings {
            nodes,
            rules: Arc::new(rules),
            max_ttl: self.max_ttl,
            key_prefix: self.key_prefix,
            client_name: self.client_name,
            wait_for_all: self.wait_for_all,
            io_thread: self.io_thread,
            connecting,
            restart_guard: self.restart_guard,
            handoff_limit: self.handoff_limit,
            fencing_expiry,
            listener: self.events.listener(),
        })
    }

    fn check_times(&self, rules: &Rules) -> Result<(), ConfigError> {
        let millisecond = Duration::from_millis(1);
        if !(millisecond..=NODE_TIMEOUT_MAX).contains(&rules.node_timeout) {
            let reason = format!("{:?} is not between 1 ms and 60 s", rules.node_timeout);
            return Err(ConfigError::Setting { name: "node_timeout", reason });
        }
        let (base, cap) = self.retry;
        if base < RETRY_BASE_MIN || cap < base {
            let reason = format!("{base:?} to {cap:?}: at least 100 µs, and the cap not below it");
            return Err(ConfigError::Setting { name: "retry", reason });
        }
        if self.max_ttl > TTL_LIMIT {
            let reason = format!("{:?} is more than 365 days", self.max_ttl);
            return Err(ConfigError::Setting { name: "max_ttl", reason });
        }
        let shortest = rules.drift.shortest_ttl(self.min_validity).map(Ttl::as_duration);
        if shortest.is_none_or(|shortest| self.max_ttl < shortest) {
            let (most, least) = (self.max_ttl, self.min_validity);
            let (name, reason) = if least.is_zero() {
                ("max_ttl", format!("{most:?} leaves no validity"))
            } else {
                ("min_validity", format!("{least:?} is more than a ttl of {most:?} leaves"))
            };
            return Err(ConfigError::Setting { name, reason });
        }
        Ok(())
    }

    fn check_fencing_expiry(&self) -> Result<Ttl, ConfigError> {
        let expiry = self.fencing_expiry.unwrap_or(FENCING_EXPIRY.max(self.max_ttl));
        let ttl = Ttl::from_duration(expiry).filter(|_| expiry >= self.max_ttl);
        ttl.ok_or_else(|| {
            let shortest = self.max_ttl;
            let reason = format!("{expiry:?} is not between max_ttl ({shortest:?}) and 365 days");
            ConfigError::Setting { name: "fencing_expiry", reason }
        })
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        if let Some(name) = &self.client_name {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                let reason = format!("{name:?} is not printable ASCII without spaces");
                return Err(ConfigError::Setting { name: "client_name", reason });
            }
        }
        let (length, most) = (self.key_prefix.len(), KEY_PREFIX_MAX);
        if length > most {
            let reason = format!("{length} bytes, more than {most}");
            return Err(ConfigError::Setting { name: "key_prefix", reason });
        }
        if is_reserved(&self.key_prefix) {
            let reason = "it contains \":redlatch:\", as keys of queues and counters do".to_owned();
            return Err(ConfigError::Setting { name: "key_prefix", reason });
        }
        Ok(())
    }
}
