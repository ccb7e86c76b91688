//! The listener of a client: the callback for its events, and how it is called.
//!
//! What must stay true: no mutex of the client is held during a callback, and no change is half
//! done, since a callback may use the client and may panic. So an event is emitted by the thread
//! whose call caused it, when the change is complete: a lock that was granted is in its guard, and
//! the undo of a failed attempt was sent. The watchdog's notifier emits the events that no call
//! caused.

use super::Event;
use crate::net::ChangeQueue;
use crate::node::NodeState;
use crate::owner_process::OwnerProcess;
use std::cell::Cell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

thread_local! {
    /// Is this thread in a callback? It has no destructor, so it exists as long as the thread.
    static IS_IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

pub(crate) type EventCallback = dyn Fn(&Event<'_>) + Send + Sync;

#[derive(Clone)]
pub(crate) struct Listener {
    callback: Arc<EventCallback>,
    /// Changes of the nodes that were not emitted yet.
    node_changes: Arc<ChangeQueue>,
    /// The process in which it is called. A callback may fork, and the child emits nothing.
    owner_process: Arc<OwnerProcess>,
}

impl Listener {
    pub(crate) fn new(callback: Arc<EventCallback>) -> Self {
        Self {
            callback,
            node_changes: Arc::default(),
            owner_process: Arc::new(OwnerProcess::here()),
        }
    }

    /// The same callback for one client, with a queue for the changes of its nodes.
    pub(crate) fn of_client(&self, owner_process: &Arc<OwnerProcess>) -> Self {
        let callback = Arc::clone(&self.callback);
        let owner_process = Arc::clone(owner_process);
        Self {
            callback,
            node_changes: Arc::default(),
            owner_process,
        }
    }

    pub(crate) fn node_changes(&self) -> Arc<ChangeQueue> {
        Arc::clone(&self.node_changes)
    }

    /// Is this thread in a callback? Its calls there emit no events, or that might never end; and
    /// they do not wait in a queue, where they might wait for themselves.
    pub(crate) fn is_in_callback() -> bool {
        IS_IN_CALLBACK.get()
    }

    /// Emits an event, after the changes of nodes until now.
    pub(crate) fn emit(&self, event: &Event<'_>) {
        if !Self::is_in_callback() {
            self.emit_node_changes();
            if !self.owner_process.is_known_forked() {
                self.call(event);
            }
        }
    }

    pub(crate) fn emit_node_changes(&self) {
        if Self::is_in_callback() {
            return;
        }
        self.node_changes.drain(|change| {
            let url = &*change.url;
            self.call(&match &change.state {
                NodeState::Up => Event::NodeUp { url },
                NodeState::Down(error) => Event::NodeDown { url, error },
                NodeState::Queue(support) => Event::NodeQueue {
                    url,
                    support: *support,
                },
                NodeState::NewReign { age, left } => Event::NewReign {
                    url,
                    age: *age,
                    left: *left,
                },
                NodeState::SessionLost => Event::SessionLost { url },
                #[cfg(feature = "registers")]
                NodeState::Votes(vote) => match vote {
                    Ok(()) => Event::NodeVotes { url },
                    Err(why) => Event::NodeWithoutVote { url, reason: *why },
                },
                NodeState::Slow(silent) => Event::NodeSlow {
                    url,
                    silent: *silent,
                },
            })
        });
    }

    /// Calls the callback, and says whether this is still the same process.
    fn call(&self, event: &Event<'_>) -> bool {
        let _in_callback = InCallback::enter();
        (self.callback)(event);
        !self.owner_process.is_forked()
    }
}

struct InCallback;

impl InCallback {
    fn enter() -> Self {
        IS_IN_CALLBACK.set(true);
        Self
    }
}

impl Drop for InCallback {
    fn drop(&mut self) {
        IS_IN_CALLBACK.set(false);
    }
}

/// A callback that panicked may leave its own state half changed, but nothing of the listener.
impl UnwindSafe for Listener {}
impl RefUnwindSafe for Listener {}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
