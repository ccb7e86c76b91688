//! Telling whoever listens what happens.

use super::LockClient;
use crate::clock::{self, Time};
use crate::error::LockLost;
use crate::event::{Event, Listener};
use crate::name::Name;
use crate::watchdog::{BackgroundEvent, Tell};

impl LockClient {
    /// Does somebody listen to what this client does in this thread?
    pub(crate) fn has_listener(&self) -> bool {
        self.shared.listener.is_some() && !Listener::is_telling() && !self.is_known_forked()
    }

    /// The time, if somebody listens.
    pub(crate) fn heard_at(&self) -> Option<Time> {
        self.has_listener().then(clock::now)
    }

    /// Tells an event, if somebody listens. What it is about must be complete: who is told may use
    /// this client, and may panic.
    pub(crate) fn tell<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(listener) = self.shared.listener.as_ref().filter(|_| self.has_listener()) {
            listener.tell(&event());
        }
    }

    /// Tells that a lock was lost which was asked for at `since`, if somebody listens.
    pub(crate) fn tell_lost(&self, resource: Name<'_>, since: Time, lost: LockLost) {
        self.tell(|| Event::Lost { resource, held: clock::now().since(since), lost });
    }
}

/// How `listener` is told what happens while nobody calls. It has no share in the client: whoever
/// drops that does not wait for this.
pub(super) fn tell_news(listener: Listener, prefix: usize) -> Tell {
    Box::new(move |news| match news {
        BackgroundEvent::Nodes => listener.tell_changes(),
        BackgroundEvent::AutoExtension { key, took, validity, error } => {
            let (resource, took, validity) = (Name::new(&key[prefix..]), *took, *validity);
            let is_automatic = true;
            listener.tell(&match error {
                None => Event::Extended { resource, took, validity, is_automatic },
                Some(error) => Event::NotExtended { resource, took, validity, error, is_automatic },
            });
        }
    })
}
