//! Settings about events: the callback, and the bridges to the crates `tracing` and `metrics`.

use super::Builder;
#[cfg(any(feature = "tracing", feature = "metrics"))]
use crate::bridge;
use crate::event::{Callback, Event, Listener};
use std::sync::Arc;

impl Builder {
    /// Calls `callback` with each [`Event`]: for counters, histograms and logs. By default there is
    /// no callback, and then events cost nothing. If it is set more than once, the last callback
    /// counts. [`tracing`](Self::tracing) and [`metrics`](Self::metrics) are for events as well,
    /// and go with it.
    ///
    /// It is called in the thread whose call caused the event, before that call returns, so it
    /// should not take long. Changes of nodes are noticed by any thread that reads from them, and
    /// reported by a thread that is done with that. Events of locks that are [kept
    /// alive](crate::LockRequest::keep_alive), and of nodes that an automatic extension finds
    /// changed, are reported when they happen, in their order, by the notifier's thread. That
    /// thread also calls the callbacks of [`on_lost`](crate::LockGuard::on_lost), one after
    /// another; while one of them blocks, up to 16,384 automatic extensions wait to be reported,
    /// and further ones are left out, but no loss is. Without such locks, nothing is reported while
    /// no call is made.
    ///
    /// The callback may use this client. Its own calls emit no events, and they ask the nodes
    /// without waiting in the client's wait queues. While it is called for
    /// [`Event::Acquired`], that lock is held. While it is called for [`Event::Queued`], the call
    /// does not renew its place in the nodes' [queue](Self::queue). So a callback that then waits
    /// for the same lock waits until that place expires ([`waiter_lease`](Self::waiter_lease)), and
    /// one that takes longer than that costs the call its place. A callback that owns a clone of
    /// its own client keeps the client from ever being dropped; give it a
    /// [`Weak`](std::sync::Weak) reference. Threads that wait for the lock in this process wait for
    /// the callback as well, so it must not wait for one of them.
    ///
    /// If it panics, so does the call, and a lock that the call had just acquired is released;
    /// except that dropping a guard never panics, and that threads of the client go on.
    pub fn on_event(mut self, callback: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(callback));
        self
    }

    /// Reports each [`Event`] to the crate [`tracing`](https://docs.rs/tracing), with a level,
    /// fields and a target for which subscribers can filter: `redlatch::lock` or `redlatch::node`.
    /// [`guide::monitoring`](crate::guide::monitoring#tracing) lists them. By default it is off.
    ///
    /// Lost locks, calls that failed and nodes that fail are warnings; what each call does is for
    /// debugging. No event has a token or a password in it; the resources are shown. The events of
    /// a call are reported in its thread, so they are in the caller's span.
    ///
    /// It goes with [`on_event`](Self::on_event), whose callback is called afterwards.
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub fn tracing(mut self) -> Self {
        self.tracing = true;
        self
    }

    /// Counts and measures each [`Event`] with the crate [`metrics`](https://docs.rs/metrics), for
    /// whichever recorder the program installs.
    /// [`guide::monitoring`](crate::guide::monitoring#metrics) lists the names. By default it is
    /// off.
    ///
    /// Resources are no labels, because there may be any number of them; nodes are. Clients of one
    /// process share the metrics. Install the recorder before [`build`](Self::build), which
    /// describes the metrics to it; they are counted by whichever recorder is installed when an
    /// event happens.
    ///
    /// It goes with [`on_event`](Self::on_event), whose callback is called afterwards.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// The bridges, and then the callback, which may panic.
    pub(super) fn listener(&self) -> Option<Listener> {
        let mut callbacks: Vec<Arc<Callback>> = Vec::new();
        #[cfg(feature = "tracing")]
        if self.tracing {
            callbacks.push(Arc::new(bridge::trace));
        }
        #[cfg(feature = "metrics")]
        if self.metrics {
            bridge::describe_metrics();
            callbacks.push(Arc::new(bridge::measure));
        }
        callbacks.extend(self.on_event.clone());
        match callbacks.len() {
            0 | 1 => callbacks.pop().map(Listener::new),
            _ => Some(Listener::new(Arc::new(move |event| {
                callbacks.iter().for_each(|callback| callback(event));
            }))),
        }
    }
}
