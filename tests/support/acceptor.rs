//! A listening port with an accepting thread that can be stopped, and its connections.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::SockRef;

use super::eventually;
use super::locks::LIMIT;

/// Accepts connections on a port of 127.0.0.1 until it is dropped.
pub(crate) struct Acceptor {
    port: u16,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Passes each connection to `handle`, which must not block. Port 0 is any free one.
    pub(crate) fn start(
        port: u16,
        mut handle: impl FnMut(TcpStream) + Send + 'static,
    ) -> io::Result<Self> {
        let listener = listen(port)?;
        let port = listener.local_addr()?.port();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                handle(stream);
            }
            // Also the copy that a child has which another thread is starting: until that runs its
            // program, connections would still be made.
            let _ = SockRef::from(&listener).shutdown(Shutdown::Both);
        });
        Ok(Self {
            port,
            stopping,
            thread: Some(thread),
        })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// Waits until nothing else listens on the port. A child process that another thread is starting
/// has a copy of the former listener until it runs its program: a while on a busy machine.
fn listen(port: u16) -> io::Result<TcpListener> {
    let bind = || TcpListener::bind(("127.0.0.1", port));
    let mut listener = bind();
    eventually(LIMIT, || {
        let is_taken = listener
            .as_ref()
            .is_err_and(|it| it.kind() == io::ErrorKind::AddrInUse);
        if is_taken {
            listener = bind();
        }
        !is_taken
    });
    listener
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Only a connection wakes a thread that sleeps in accept.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The open streams, so that other threads than their users can close them.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Vec<Weak<TcpStream>>>);

impl Streams {
    pub(crate) fn add(&self, stream: TcpStream) -> Arc<TcpStream> {
        let stream = Arc::new(stream);
        let mut all = self.all();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&stream));
        stream
    }

    /// Closes all of them in order: the peer reads all bytes and then the end.
    pub(crate) fn cut(&self) {
        for stream in self.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Resets all of them: the peer's next read fails.
    pub(crate) fn reset(&self) {
        self.take().iter().for_each(|stream| mark_for_reset(stream));
    }

    fn take(&self) -> Vec<Arc<TcpStream>> {
        self.all()
            .drain(..)
            .filter_map(|stream| stream.upgrade())
            .collect()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<TcpStream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closing the stream will reset the connection. Readers get the end of the stream, so the threads
/// that use it drop it.
pub(crate) fn mark_for_reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    let _ = stream.shutdown(Shutdown::Read);
}

/// Shuts down sending, unless the stream is to be reset: an orderly end must not come first.
pub(crate) fn finish_sending(stream: &TcpStream) {
    if SockRef::from(stream).linger().ok().flatten() != Some(Duration::ZERO) {
        let _ = stream.shutdown(Shutdown::Write);
    }
}
