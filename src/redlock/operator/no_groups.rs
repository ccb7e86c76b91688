//! In place of `groups`, without the feature `groups`: there are none to ask.

use crate::config::RedisNode;
use crate::net::Endpoint;
use crate::node::NodeStatus;
use std::time::Duration;

pub(super) struct Groups;

impl Groups {
    pub(super) fn new(_: &[RedisNode], _: Vec<Endpoint>) -> Self {
        Self
    }

    pub(super) fn ask_others(&self, _: Duration) -> impl FnOnce(&mut [NodeStatus]) + use<> {
        |_| {}
    }
}
