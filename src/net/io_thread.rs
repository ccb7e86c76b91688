//! A thread that leads all the time, for clients that are configured to have one.
//!
//! It sleeps in the poll while there is no request and nothing arrives. It runs no code of the
//! user, so only the scheduler and signal handlers can delay it. It ends when it is
//! [closed](LeaderFollowers::close). If it has the last reference to the connections by then, it
//! waits for the replies to the removals that were written.

use super::leader_followers::{EventLoop, LeaderFollowers, Wake};
use crossbeam_channel::{Receiver, bounded};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

/// The thread. Dropping this waits until the thread has ended, but for at most `join_timeout`.
#[derive(Debug)]
pub(super) struct IoThread {
    ended: Receiver<Infallible>,
    join_timeout: Duration,
}

impl IoThread {
    /// Starts the thread. It should take at most `join_timeout` to end after it is
    /// [closed](LeaderFollowers::close).
    pub(super) fn start<E, W>(
        shared: &Arc<LeaderFollowers<E, W>>,
        join_timeout: Duration,
    ) -> io::Result<Self>
    where
        E: EventLoop<Order: Send, Message: Send, Outcome: Send> + Send + 'static,
        W: Wake + Send + Sync + 'static,
    {
        let (ends, ended) = bounded(0);
        let shared = Arc::clone(shared);
        let run = move || {
            shared.run();
            drop(shared);
            drop(ends);
        };
        thread::Builder::new().name("redlatch-io".to_owned()).spawn(run)?;
        Ok(Self { ended, join_timeout })
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        // Nothing is ever sent: this returns when the sender is dropped or the time is over.
        let _ = self.ended.recv_timeout(self.join_timeout);
    }
}
