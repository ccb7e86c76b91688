//! Telling whoever listens what happens.

use super::LockClient;
use crate::clock::{self, Time};
use crate::error::Lost;
use crate::event::{Event, Listener};
use crate::watchdog::{News, Tell};

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
            listener.tell(&event());
        }
    }

    /// Tells that a lock was lost which was asked for at `since`, if somebody listens.
    pub(crate) fn tell_lost(&self, resource: &[u8], since: Time, lost: Lost) {
        self.tell(|| Event::Lost { resource, held: clock::now().since(since), lost });
    }
}

/// How `listener` is told what happens while nobody calls. It has no share in the client: whoever
/// drops that does not wait for this.
pub(super) fn tell_news(listener: Listener, prefix: usize) -> Tell {
    Box::new(move |news| match news {
        News::Nodes => listener.tell_changes(),
        News::Renewal { key, took, validity, error } => {
            let (resource, took, validity) = (&key[prefix..], *took, *validity);
            let is_renewal = true;
            listener.tell(&match error {
                None => Event::Extended { resource, took, validity, is_renewal },
                Some(error) => Event::NotExtended { resource, took, validity, error, is_renewal },
            });
        }
    })
}
