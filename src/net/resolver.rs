//! Turning names into addresses, away from the thread that drives.
//!
//! The operating system's resolver blocks, for many seconds if its servers do not answer. So a
//! lookup runs on a short-lived thread of its own, at most one per node, and the driver is woken
//! when it is done. A lookup that outlives the patience of those who wanted it serves the next
//! connection.

use crossbeam_channel::{Receiver, Sender};
use mio::Waker;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

/// What a lookup found.
pub(super) type Found = io::Result<Vec<SocketAddr>>;

/// A lookup that is done, and the node it was for.
type Lookup = (usize, Found);

/// Starts lookups and collects what they found.
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

    /// Begins to look up `host` for the node at `index`.
    pub(super) fn look_up(&self, index: usize, host: &str, port: u16) -> io::Result<()> {
        let (host, results, waker) = (host.to_owned(), self.sender.clone(), self.waker.clone());
        let lookup = move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // If the client is gone by now, nobody wants to know.
            if results.send((index, found)).is_ok() {
                let _ = waker.wake();
            }
        };
        thread::Builder::new().name("redlatch-resolver".to_owned()).spawn(lookup).map(drop)
    }

    /// The next lookup that is done.
    pub(super) fn poll(&self) -> Option<(usize, Found)> {
        self.receiver.try_recv().ok()
    }
}
