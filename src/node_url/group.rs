//! URLs of replicated groups: which servers say where the master is.
//!
//! ```text
//! redis+sentinel://[[user]:password@]s1[:26379][,s2…]/name[/db][?replicas=2]   redis-sentinel://…
//! redis+cluster://[[user]:password@]h1[:6379][,h2…][?nodes=3]                  redis-cluster://…
//! redis://primary.example[:port][/db]?failover=true                            a name that moves
//! ```
//!
//! With `rediss` or `valkeys` in front of the `+`, or as the whole scheme of the last form, over
//! TLS. User and password are the servers', and those of the Sentinels too unless `sentinel_user`
//! or `sentinel_password` say otherwise. lettuce's `?sentinelMasterId=name` is understood.

#[cfg(feature = "groups")]
mod parse;

#[cfg(feature = "groups")]
pub(super) use parse::{Kind, parse};

use super::{HostPort, host};
use std::fmt;

/// How many nodes a cluster stands for at most, unless slots are named.
const NODES_MAX: u16 = 5;

const SLOTS: u16 = 16_384;

/// What is known of a node that is a replicated group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failover {
    /// How many replicas the master has, if a majority of the group is to acknowledge each vote.
    pub(crate) replicas: Option<u32>,
    /// User and password for the Sentinels, if they have others than the servers.
    pub(crate) sentinel: Option<Login>,
    /// Are all certificates valid for the one name that the URL says?
    pub(crate) has_one_name: bool,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<Vec<u8>>,
    pub(crate) password: Option<Vec<u8>>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

/// As a URL has it.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", host::in_url(&self.host), self.port)
    }
}

/// These places as a URL has them.
pub(super) struct HostPorts<'a>(pub(super) &'a [HostPort]);

impl fmt::Display for HostPorts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, place)| {
            let mark = if index == 0 { "" } else { "," };
            write!(f, "{mark}{place}")
        })
    }
}

/// A number of nodes of a cluster.
pub(super) fn nodes(value: &[u8]) -> Option<u16> {
    let number = super::number(std::str::from_utf8(value).ok()?)?;
    (1..=NODES_MAX).contains(&number).then_some(number)
}

/// Slots, between commas, each once.
pub(super) fn slots(value: &[u8]) -> Option<Vec<u16>> {
    let mut slots = Vec::new();
    for text in std::str::from_utf8(value).ok()?.split(',') {
        let slot = super::number(text).filter(|slot| *slot < SLOTS)?;
        if text.is_empty() || slots.contains(&slot) {
            return None;
        }
        slots.push(slot);
    }
    Some(slots)
}

/// A number of replicas of which, with the master, a majority can be lost to a failover and be
/// there after it.
pub(super) fn replicas(value: &[u8]) -> Option<u32> {
    let number = super::number(std::str::from_utf8(value).ok()?)?;
    (2..=100).contains(&number).then_some(number)
}
