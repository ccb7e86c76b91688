//! The thread of a server, and the orders that it gets from outside.
//!
//! The thread waits in a poll. Orders come through a channel, and a waker ends the poll. When the
//! channel is closed, the thread ends. While it is paused, it waits on the channel only.

use std::io;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use mio::Waker;

/// A running thread. Dropping it ends the thread, and waits until that is done.
#[derive(Debug)]
pub(super) struct ServerThread {
    control: Option<Sender<Control>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// An order to the thread.
#[derive(Debug)]
enum Control {
    /// Send no more replies, and confirm this on the channel.
    Pause(Sender<()>),
    Resume,
}

/// The orders, at the side of the thread.
#[derive(Debug)]
pub(super) struct Orders(Receiver<Control>);

impl ServerThread {
    /// Starts a thread with this name. The waker ends the poll of `run`.
    pub(super) fn spawn(
        name: String,
        waker: Waker,
        run: impl FnOnce(Orders) + Send + 'static,
    ) -> io::Result<Self> {
        let (control, orders) = unbounded();
        let thread = thread::Builder::new().name(name).spawn(move || run(Orders(orders)))?;
        Ok(Self { control: Some(control), waker, thread: Some(thread) })
    }

    /// Returns when the thread sends nothing more.
    pub(super) fn pause(&self) {
        let (done, wait) = bounded(1);
        self.order(Control::Pause(done));
        // An error means that the thread has ended: the server is silent too.
        let _ = wait.recv();
    }

    pub(super) fn resume(&self) {
        self.order(Control::Resume);
    }

    /// Ends the poll, unless the thread is paused.
    #[cfg(feature = "zookeeper")]
    pub(super) fn wake(&self) {
        // It fails only if the thread has ended.
        let _ = self.waker.wake();
    }

    fn order(&self, order: Control) {
        if let Some(control) = &self.control {
            // Both fail only if the thread has ended.
            let _ = control.send(order);
            let _ = self.waker.wake();
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.control = None;
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // The thread's panic, if any, was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Orders {
    /// Carries out the pending orders; a pause lasts until the next order. `None` if the thread is
    /// to end.
    pub(super) fn process(&self) -> Option<()> {
        let mut paused = false;
        loop {
            let order = if paused {
                self.0.recv().ok()?
            } else {
                match self.0.try_recv() {
                    Ok(order) => order,
                    Err(TryRecvError::Empty) => return Some(()),
                    Err(TryRecvError::Disconnected) => return None,
                }
            };
            match order {
                Control::Pause(done) => {
                    paused = true;
                    // It fails if the caller no longer waits.
                    let _ = done.send(());
                }
                Control::Resume => paused = false,
            }
        }
    }
}
