//! What happens to a session, for those who open rounds on it: taken out at one place.

use super::notifications::Hint;
use super::{Answer, Session};
use crate::engine::Token;
use crate::node::QueueSupport;
use std::mem;
use std::time::Duration;

#[derive(Debug)]
pub enum SessionEvent {
    /// The server has introduced itself on a new connection, and nothing of it has counted before.
    Greeted,
    Answer(Answer),
    /// What the node has told about a waiter.
    Told(Token, Hint),
    /// Waiting in a queue on this node does not work, or not fully.
    Queue(QueueSupport),
    /// The group is in another reign than before, which is known for this long, or zero if it was
    /// adopted or proven, and whose grants do not count for that long.
    NewReign {
        age: Duration,
        left: Duration,
    },
    /// The connection was lost, or, unless there was one, could not be made.
    Down {
        was_ready: bool,
    },
}

impl Session {
    /// What has happened, one after another: a greeting before the answers behind it, and the loss
    /// of a connection behind those that came on it.
    pub fn poll(&mut self) -> Option<SessionEvent> {
        if mem::take(&mut self.has_greeted) {
            return Some(SessionEvent::Greeted);
        }
        if let Some(mut answer) = self.answers.pop_front() {
            self.weigh_server(&mut answer);
            return Some(SessionEvent::Answer(answer));
        }
        if let Some((waiter, hint)) = self.notifications.hints.pop_front() {
            return Some(SessionEvent::Told(waiter, hint));
        }
        if self.notifications.is_used || self.notifications.refusal.is_some() {
            if let Some(support) = self.take_queue_change() {
                return Some(SessionEvent::Queue(support));
            }
        }
        if self.options.group.is_some() {
            if let Some((age, left)) = self.trust.group.take_new_reign() {
                return Some(SessionEvent::NewReign { age, left });
            }
        }
        let was_ready = self.went_down.take()?;
        Some(SessionEvent::Down { was_ready })
    }
}
