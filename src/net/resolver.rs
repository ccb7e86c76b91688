//! Turning names into addresses, away from the thread that drives.
//!
//! The operating system's resolver blocks, for many seconds if its servers do not answer. So a lookup
//! runs on a short-lived thread of its own, at most one per node, and the driver is woken when it is
//! done. A lookup that outlives the patience of those who wanted it serves the next connection.

use crossbeam_channel::{Receiver, Sender};
use mio::Waker;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

/// What a lookup found.
pub(super) type Found = io::Result<Vec<SocketAddr>>;

/// Starts lookups and collects what they found.
#[derive(Debug)]
pub(super) struct Resolver {
    results: (Sender<(usize, Found)>, Receiver<(usize, Found)>),
    waker: Arc<Waker>,
}

impl Resolver {
    pub(super) fn new(waker: Arc<Waker>) -> Self {
        Self { results: crossbeam_channel::unbounded(), waker }
    }

    /// Begins to look up `host` for the node at `index`.
    pub(super) fn look_up(&self, index: usize, host: &str, port: u16) -> io::Result<()> {
        let (host, results, waker) = (host.to_owned(), self.results.0.clone(), self.waker.clone());
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
        self.results.1.try_recv().ok()
    }
}
