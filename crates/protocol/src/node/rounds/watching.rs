//! Records changes of nodes for events. Without a listener, each of these functions only checks an
//! `Option`.

use super::Rounds;
use crate::engine::Node;
use crate::node::change::{ChangeRecorder, NodeChange};
use crate::node::session::Answer;
use crate::time::Time;
use std::time::Duration;

impl<W> Rounds<W> {
    /// Records the changes of nodes from now on. A node is slow after `node_timeout` of silence.
    pub fn watch(&mut self, node_timeout: Duration) {
        self.watch = Some(ChangeRecorder::new(node_timeout));
    }

    pub fn poll_change(&mut self) -> Option<NodeChange> {
        self.watch.as_mut()?.pop()
    }

    /// The node has answered the greeting, or it is known anew whether it is the same server as an
    /// earlier node: then none of its answers counts, as if it was down.
    pub(super) fn note_greeting(&mut self, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &self.sessions[node.index()];
            match session.same_server() {
                Some(error) => watch.lost(node, session.name(), &error),
                None => watch.greeted(node, session.name()),
            }
        }
    }

    pub(super) fn note_queue(&mut self, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &mut self.sessions[node.index()];
            if let Some(support) = session.take_queue_change() {
                watch.queue(session.name(), support);
            }
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

    /// All bytes that have arrived must be processed first.
    pub(super) fn note_silence(&mut self, now: Time, node: Node) {
        if let Some(watch) = &mut self.watch {
            let session = &self.sessions[node.index()];
            if let Some(since) = session.unanswered_since() {
                watch.silent(node, session.name(), now.since(since));
            }
        }
    }
}
