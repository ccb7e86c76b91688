//! What an event is about, and its kind in a word.

use super::Event;
use crate::name::Name;

impl<'a> Event<'a> {
    /// The kind of event, in a word that can be a label of a metric: `acquired`, `node_down`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Attempt { .. } => "attempt",
            Self::Quarantined { .. } => "quarantined",
            Self::Queued { .. } => "queued",
            Self::Woken { .. } => "woken",
            Self::Acquired { .. } => "acquired",
            Self::Contended { .. } => "contended",
            Self::Failed { .. } => "failed",
            Self::Extended { .. } => "extended",
            Self::NotExtended { .. } => "not_extended",
            Self::Lost { .. } => "lost",
            Self::Released { .. } => "released",
            Self::LetExpire { .. } => "let_expire",
            Self::NodeUp { .. } => "node_up",
            Self::NodeDown { .. } => "node_down",
            Self::NodeSlow { .. } => "node_slow",
            Self::NodeQueue { .. } => "node_queue",
            Self::SessionLost { .. } => "session_lost",
            #[cfg(feature = "registers")]
            Self::Register(event) => event.name(),
        }
    }

    /// The name of the resource or of the register, if the event is about a lock or a register.
    #[must_use]
    pub fn resource(&self) -> Option<Name<'a>> {
        match self {
            Self::Attempt { resource, .. }
            | Self::Quarantined { resource, .. }
            | Self::Queued { resource, .. }
            | Self::Woken { resource, .. }
            | Self::Acquired { resource, .. }
            | Self::Contended { resource, .. }
            | Self::Failed { resource, .. }
            | Self::Extended { resource, .. }
            | Self::NotExtended { resource, .. }
            | Self::Lost { resource, .. }
            | Self::Released { resource, .. }
            | Self::LetExpire { resource, .. } => Some(*resource),
            #[cfg(feature = "registers")]
            Self::Register(event) => event.register(),
            Self::NodeUp { .. } | Self::NodeDown { .. } | Self::NodeSlow { .. } => None,
            Self::NodeQueue { .. } | Self::SessionLost { .. } => None,
        }
    }

    /// The node's URL, if the event is about a node, or the session with an ensemble.
    #[must_use]
    pub fn url(&self) -> Option<&'a str> {
        match self {
            Self::NodeUp { url } | Self::NodeDown { url, .. } => Some(url),
            Self::NodeSlow { url, .. } | Self::NodeQueue { url, .. } => Some(url),
            Self::SessionLost { url } => Some(url),
            #[cfg(feature = "registers")]
            Self::Register(event) => event.url(),
            _ => None,
        }
    }
}
