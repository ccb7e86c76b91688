//! In place of `group`, without the feature `groups`: no node is a replicated group.

use super::wrong_server::NamedServer;
use std::sync::Arc;
use std::time::Duration;

/// What a client assumes of a group. There is none, and so no value of this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupOptions {}

impl GroupOptions {
    pub(super) fn tag(&self) -> &Arc<[u8]> {
        match *self {}
    }

    pub(super) fn skew(&self) -> Duration {
        match *self {}
    }

    #[cfg(feature = "diagnostics")]
    pub(super) fn waits_for_replicas(&self) -> bool {
        match *self {}
    }

    pub(super) fn named_server(&self) -> NamedServer {
        match *self {}
    }
}
