//! What changes about the nodes, if somebody wants to know. If nobody does, each of these is a look
//! at an `Option`.

use super::Rounds;
use crate::clock::Time;
use crate::engine::Node;
use crate::node::change::{ChangeRecorder, NodeChange};
use crate::node::session::Answer;
use std::time::Duration;

impl<W> Rounds<W> {
    /// Collects from now on what changes about the nodes. One that has been silent for `patience`
    /// is slow.
    pub fn watch(&mut self, patience: Duration) {
        self.watch = Some(ChangeRecorder::new(patience));
    }

    /// The next change.
    pub fn poll_change(&mut self) -> Option<NodeChange> {
        self.watch.as_mut()?.pop()
    }

    pub(super) fn note_greeting(&mut self, node: Node) {
        if let Some(watch) = &mut self.watch {
            watch.greeted(node, self.sessions[node.index()].name());
        }
    }

    pub(super) fn note_answer(&mut self, node: Node, answer: &Answer) {
        if let (Some(watch), Some(took)) = (&mut self.watch, answer.took) {
            watch.answered(node, took);
        }
    }

    pub(super) fn note_loss(&mut self, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &self.sessions[node.index()];
            if let Some(problem) = session.loss() {
                watch.lost(node, session.name(), problem);
            }
        }
    }

    /// What has arrived must have been passed on before.
    pub(super) fn note_silence(&mut self, now: Time, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &self.sessions[node.index()];
            if let Some(since) = session.unanswered_since() {
                watch.silent(node, session.name(), now.since(since));
            }
        }
    }
}
