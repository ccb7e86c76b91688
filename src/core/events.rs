//! Emitting events to the listener of a client.

use super::Core;
use crate::clock::{self, Time};
use crate::config::is_reserved;
use crate::error::LossReason;
use crate::event::{Event, Listener};
use crate::name::Name;
use crate::watchdog::{BackgroundEvent, Emit};

impl Core {
    /// Does this client have a listener, and may this thread call it?
    pub(crate) fn has_listener(&self) -> bool {
        self.listener.is_some() && !Listener::is_in_callback() && !self.is_known_forked()
    }

    /// The time, if there is a listener: without one, no clock is read.
    pub(crate) fn now_if_listened(&self) -> Option<Time> {
        self.has_listener().then(clock::now)
    }

    /// Emits an event, if there is a listener. What the event reports must be complete: the
    /// callback may use this client, and may panic.
    pub(crate) fn emit<'a>(&self, event: impl FnOnce() -> Event<'a>) {
        if let Some(listener) = self.listener.as_ref().filter(|_| self.has_listener()) {
            let event = event();
            // A register's turn is a lock of the library's own.
            if !event.resource().is_some_and(|name| is_reserved(name.as_bytes())) {
                listener.emit(&event);
            }
        }
    }

    /// Emits the loss of a lock that was requested at `since`, if there is a listener.
    pub(crate) fn emit_lost(&self, resource: Name<'_>, since: Time, reason: LossReason) {
        self.emit(|| Event::Lost { resource, held: clock::now().since(since), reason });
    }
}

/// Emits to `listener` what happens outside any call. It holds no reference to the core: dropping
/// the client does not wait for it.
pub(super) fn emit_background(listener: Listener, prefix: usize) -> Emit {
    Box::new(move |event| match event {
        BackgroundEvent::Nodes => listener.emit_node_changes(),
        BackgroundEvent::AutoExtension { key, took, validity, error } => {
            let (resource, took, validity) = (Name::new(&key[prefix..]), *took, *validity);
            let is_automatic = true;
            listener.emit(&match error {
                None => Event::Extended { resource, took, validity, is_automatic },
                Some(error) => Event::NotExtended { resource, took, validity, error, is_automatic },
            });
        }
    })
}
