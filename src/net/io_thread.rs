//! A thread that drives the connections, for clients that want one.
//!
//! It is asleep in the poll whenever nothing is asked and nothing arrives. It runs nothing of the
//! caller's, so that nothing holds it up but the scheduler and signal handlers. It ends when it is
//! told to, having waited for the removals that were written, unless somebody else still has a
//! share in the connections.

use super::leader_followers::{Drive, LeaderFollowers, Wake};
use crossbeam_channel::{Receiver, bounded};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

/// The thread. Dropping this waits for it to end, but no longer than it should take.
#[derive(Debug)]
pub(super) struct IoThread {
    ended: Receiver<Infallible>,
    patience: Duration,
}

impl IoThread {
    /// Has a thread drive. It should take no longer than `patience` to end when it is
    /// [told to](LeaderFollowers::close).
    pub(super) fn start<D, W>(
        turn: &Arc<LeaderFollowers<D, W>>,
        patience: Duration,
    ) -> io::Result<Self>
    where
        D: Drive<Request: Send, Outcome: Send> + Send + 'static,
        W: Wake + Send + Sync + 'static,
    {
        let (ends, ended) = bounded(0);
        let turn = Arc::clone(turn);
        let serve = move || {
            turn.serve();
            drop(turn);
            drop(ends);
        };
        thread::Builder::new().name("redlatch-io".to_owned()).spawn(serve)?;
        Ok(Self { ended, patience })
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        // Nothing is ever sent: it hears that the other end is gone, or that it takes too long.
        let _ = self.ended.recv_timeout(self.patience);
    }
}
