//! Resolves host names outside the leader's thread.
//!
//! The operating system's resolver blocks, for many seconds if its DNS servers do not answer. So
//! each lookup runs on a short-lived thread of its own, at most one per node, and wakes the leader
//! when it is done. A lookup that takes longer than the request that started it is used by the next
//! connection.

use crossbeam_channel::{Receiver, Sender};
use mio::Waker;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

/// The result of a lookup.
pub(super) type Found = io::Result<Vec<SocketAddr>>;

/// The index of a node, and the result of the lookup for it.
type Lookup = (usize, Found);

/// Starts lookups and collects their results.
#[derive(Debug)]
pub(super) struct Resolver {
    sender: Sender<Lookup>,
    receiver: Receiver<Lookup>,
    waker: Arc<Waker>,
}

impl Resolver {
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self { sender, receiver, waker }
    }

    /// Starts to look up `host` for the node at `index`.
    pub(super) fn look_up(&self, index: usize, host: &str, port: u16) -> io::Result<()> {
        let (host, results, waker) = (host.to_owned(), self.sender.clone(), self.waker.clone());
        let lookup = move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // It fails if the client was dropped meanwhile.
            if results.send((index, found)).is_ok() {
                let _ = waker.wake();
            }
        };
        thread::Builder::new().name("redlatch-resolver".to_owned()).spawn(lookup).map(drop)
    }

    /// The next result.
    pub(super) fn poll(&self) -> Option<(usize, Found)> {
        self.receiver.try_recv().ok()
    }
}
