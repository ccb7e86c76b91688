//! What happens to the sessions, and who of the rounds learns of it.

use super::Rounds;
use crate::engine::Node;
use crate::node::report::NodeState;
use crate::node::session::SessionEvent;
use crate::time::Time;

impl<W> Rounds<W> {
    /// Takes what has happened to one node's session.
    pub(super) fn collect(&mut self, now: Time, node: Node) {
        while let Some(event) = self.sessions[node.index()].poll() {
            self.take(now, node, event);
        }
    }

    // It is not inlined, so that nothing is saved and restored where nothing has happened.
    #[inline(never)]
    fn take(&mut self, now: Time, node: Node, event: SessionEvent) {
        match event {
            SessionEvent::Greeted => {
                self.compare_servers(now, node);
                self.note_greeting(node);
                self.note_reached(now, node);
            }
            SessionEvent::Answer(answer) => {
                self.note_answer(node, &answer);
                self.count(now, node, answer);
            }
            SessionEvent::Told(waiter, hint) => self.told(now, node, &waiter, hint),
            SessionEvent::Queue(support) => self.note_news(node, NodeState::Queue(support)),
            SessionEvent::NewReign { age, left } => {
                self.note_news(node, NodeState::NewReign { age, left });
            }
            SessionEvent::Down { was_ready } => {
                self.note_loss(node);
                if was_ready {
                    self.withdraw_claims(now, node);
                }
            }
        }
    }
}
