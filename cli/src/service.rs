//! What `--notify` tells systemd, which has started this program as a service of `Type=notify`:
//! that the lock is held. The protocol is that of sd_notify(3): lines in a datagram to a socket.

use super::acquire::AcquireArguments;
use super::output;
use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The variable with the socket's address.
pub(crate) const VARIABLE: &str = "NOTIFY_SOCKET";

/// For so long a full socket is waited for. The lock is what counts.
const LIMIT: Duration = Duration::from_secs(1);

pub(crate) struct Service {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The locks on one line.
    locks: String,
}

impl Service {
    /// Without the variable, this program is no service, and nothing is told.
    pub(crate) fn new(is_asked_for: bool, arguments: &AcquireArguments) -> Self {
        let name = env::var_os(VARIABLE).filter(|name| is_asked_for && !name.is_empty());
        let socket = name.and_then(|name| connect(&name).inspect_err(warn).ok());
        Self { socket, locks: arguments.shown() }
    }

    pub(crate) fn waiting(&self) {
        self.send(&format!("STATUS=waiting for the lock {}", self.locks));
    }

    pub(crate) fn held(&self) {
        self.send(&format!("READY=1\nSTATUS=holding the lock {}", self.locks));
    }

    pub(crate) fn stopping(&self) {
        self.send(&format!("STOPPING=1\nSTATUS=releasing the lock {}", self.locks));
    }

    fn send(&self, text: &str) {
        if let Some((socket, to)) = &self.socket {
            let _ = socket.send_to_addr(text.as_bytes(), to).inspect_err(warn);
        }
    }
}

fn connect(name: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let to = match name.as_bytes() {
        [b'@', rest @ ..] => abstract_address(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(LIMIT))?;
    Ok((socket, to))
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

fn warn(error: &io::Error) {
    let text = format!("warning: --notify: {VARIABLE}: {error}");
    output::note_aside(move || text);
}
