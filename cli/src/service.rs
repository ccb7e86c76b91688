//! What `--notify` tells systemd, which has started this program as a service of `Type=notify`:
//! that the lock is held. The protocol is that of sd_notify(3): lines in a datagram to a socket.

use super::acquire::AcquireArguments;
use super::output;
use std::collections::VecDeque;
use std::env;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The variable with the socket's address.
pub(crate) const VARIABLE: &str = "NOTIFY_SOCKET";

/// How long after a full queue the messages that are left are sent again.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Service {
    outbox: Option<Arc<Outbox>>,
    /// The locks on one line.
    locks: String,
}

/// No message is waited for: the lock is what counts.
struct Outbox {
    socket: UnixDatagram,
    to: SocketAddr,
    /// What the socket's queue had no room for. As long as there is any, a thread sends it again.
    left: Mutex<VecDeque<String>>,
    is_warned: AtomicBool,
}

impl Service {
    /// Without the variable, this program is not a service, and nothing is told.
    pub(crate) fn new(is_asked_for: bool, arguments: &AcquireArguments) -> Self {
        let name = env::var_os(VARIABLE).filter(|name| is_asked_for && !name.is_empty());
        let outbox = name.and_then(|name| match Outbox::new(&name) {
            Ok(outbox) => Some(outbox),
            Err(error) => {
                output::note(&warning(&error));
                None
            }
        });
        Self {
            outbox: outbox.map(Arc::new),
            locks: arguments.shown(),
        }
    }

    pub(crate) fn waiting(&self) {
        self.send(format!("STATUS=waiting for the lock {}", self.locks));
    }

    pub(crate) fn held(&self) {
        self.send(format!("READY=1\nSTATUS=holding the lock {}", self.locks));
    }

    pub(crate) fn stopping(&self) {
        self.send(format!(
            "STOPPING=1\nSTATUS=releasing the lock {}",
            self.locks
        ));
    }

    fn send(&self, text: String) {
        let Some(outbox) = &self.outbox else { return };
        let mut left = outbox.left();
        left.push_back(text);
        // Otherwise there is a thread, and this is for later.
        if left.len() == 1 && !outbox.send(&mut left) {
            let outbox = Arc::clone(outbox);
            let thread = thread::Builder::new().spawn(move || outbox.send_later());
            if thread.is_err() {
                left.clear();
            }
        }
    }
}

/// What is left at the end is given up.
impl Drop for Service {
    fn drop(&mut self) {
        let Some(outbox) = &self.outbox else { return };
        if !outbox.left().is_empty() && !outbox.is_warned.swap(true, Ordering::Relaxed) {
            output::note(&warning(&"its queue is full"));
        }
    }
}

impl Outbox {
    fn new(name: &OsStr) -> io::Result<Self> {
        let to = match name.as_bytes() {
            [b'@', rest @ ..] => abstract_address(rest)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let is_warned = AtomicBool::new(false);
        Ok(Self {
            socket,
            to,
            left: Mutex::default(),
            is_warned,
        })
    }

    fn left(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is left, in its order. `false`: the queue of the socket is full.
    fn send(&self, left: &mut VecDeque<String>) -> bool {
        while let Some(text) = left.front() {
            match self.socket.send_to_addr(text.as_bytes(), &self.to) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if !self.is_warned.swap(true, Ordering::Relaxed) => {
                    output::note_aside(move || warning(&error));
                }
                _ => {}
            }
            left.pop_front();
        }
        true
    }

    fn send_later(&self) {
        loop {
            thread::sleep(PAUSE);
            if self.send(&mut self.left()) {
                return;
            }
        }
    }
}

fn warning(error: &impl Display) -> String {
    format!("warning: --notify: {VARIABLE}: {error}")
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}
