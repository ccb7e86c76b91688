//! In place of `group`, without the feature `groups`: nothing of this is ever called.

use super::{Answer, Session};
use crate::engine::Request;
use crate::node::command::{NoReply, NodeReply};
use crate::node::flight::InFlight;
use crate::node::{GroupOptions, NodeError, SharedRequest, Whereabouts};
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Group;

impl Group {
    pub(super) fn keep(&mut self, _: Answer, _: SharedRequest) {}

    pub(super) fn age(&self, _: Time) -> Option<Duration> {
        None
    }

    #[cfg(feature = "diagnostics")]
    pub(super) fn status(&self, _: Time) -> Option<crate::node::GroupStatus> {
        None
    }

    pub(super) fn take_new_reign(&mut self) -> Option<(Duration, Duration)> {
        None
    }

    pub(super) fn former(&self) -> Option<String> {
        None
    }
}

impl Session {
    pub(super) fn greet_again(&mut self, _: Time, _: &GroupOptions) {}

    pub(super) fn greet_group(&mut self, _: Time, _: &GroupOptions) {}

    pub(super) fn note_vote(&mut self, _: Time, _: &mut SharedRequest, _: bool, _: &GroupOptions) {}

    pub(super) fn note_again(&mut self, _: &InFlight) {}

    pub(super) fn seal(&mut self, _: &GroupOptions) {}

    pub(super) fn weigh_in_reign(
        &mut self,
        _: Time,
        _: &Request,
        _: &mut NodeReply,
        _: &GroupOptions,
    ) {
    }

    pub(super) fn of_group(&mut self, why: NoReply) -> NoReply {
        why
    }

    pub(super) fn of_announced(&self, problem: NodeError) -> NodeError {
        problem
    }

    pub(super) fn lose_reign(&mut self, _: Time, _: &NodeError) {}

    pub(super) fn looks_in_group_at(&self) -> Option<Time> {
        None
    }

    pub(super) fn inquires_in_group_at(&self) -> Option<Time> {
        None
    }

    pub(in crate::node) fn may_count_in(&self, left: Duration) -> Duration {
        left
    }

    pub fn located(&mut self, _: u64, _: Time) {}

    pub fn announced(&mut self, _: Arc<str>) {}

    pub fn looking(&mut self, _: Time) {}

    pub fn named(&mut self, _: Time, _: u64, _: Time, _: Whereabouts) -> bool {
        false
    }
}
