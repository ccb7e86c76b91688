//! Telling whoever listens what happens.

use super::LockClient;
use crate::clock::{self, Time};
use crate::error::Lost;
use crate::event::{Event, Listener};

impl LockClient {
    /// Does somebody listen to what this client does in this thread?
    pub(crate) fn is_heard(&self) -> bool {
        self.shared.listener.is_some() && !Listener::is_telling() && !self.is_known_foreign()
    }

    /// The time, if somebody listens.
    pub(crate) fn heard_at(&self) -> Option<Time> {
        self.is_heard().then(clock::now)
    }

    /// Tells an event, if somebody listens. What it is about must be complete: who is told may use
    /// this client, and may panic.
    pub(crate) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(listener) = self.shared.listener.as_ref().filter(|_| self.is_heard()) {
            listener.tell(&self.shared.net, &event());
            // It may have forked, and then it is the child in which this is found out.
            self.is_foreign();
        }
    }

    /// Tells that a lock was lost which was asked for at `since`, if somebody listens.
    pub(crate) fn tell_lost(&self, resource: &[u8], since: Time, lost: Lost) {
        self.tell(|| Event::Lost { resource, held: clock::now().since(since), lost });
    }
}
