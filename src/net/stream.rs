//! A connection's socket. Nothing outside this file knows what kind it is.

use super::SocketOptions;
use crate::node::Host;
use crate::node_url::Address;
use mio::event::Source;
use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;

/// An address that a socket can connect to at once: its host name, if it had one, is resolved.
#[derive(Clone, Debug)]
pub(super) enum Target<'a> {
    Tcp(SocketAddr),
    Unix(&'a Path),
}

/// A socket that never blocks.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Stream {
    /// Begins to connect. The socket becomes writable when that has succeeded or failed.
    pub(super) fn connect(
        target: &Target<'_>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut stream = match target {
            Target::Tcp(address) => Self::Tcp(TcpStream::connect(*address)?),
            #[cfg(unix)]
            Target::Unix(path) => Self::Unix(UnixStream::connect(path)?),
            // A URL of a Unix socket is refused when the client is built.
            #[cfg(not(unix))]
            Target::Unix(path) => {
                let why = format!("{}: no Unix sockets here", path.display());
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        };
        registry.register(stream.source(), token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(stream)
    }

    /// Has the connection been made? `None` if that is not known yet: a wake-up is only a hint.
    pub(super) fn is_connected(&self) -> Option<io::Result<()>> {
        let (error, peer) = match self {
            Self::Tcp(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
            #[cfg(unix)]
            Self::Unix(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
        };
        match (error, peer) {
            (Ok(Some(error)) | Err(error), _) => Some(Err(error)),
            (Ok(None), Ok(())) => Some(self.prepare()),
            (Ok(None), Err(error)) if error.kind() == io::ErrorKind::NotConnected => None,
            (Ok(None), Err(error)) => Some(Err(error)),
        }
    }

    /// Sets the options that a TCP socket has.
    pub(super) fn set_options(&self, options: SocketOptions) {
        match self {
            Self::Tcp(stream) => options.set_on(stream),
            #[cfg(unix)]
            Self::Unix(_) => {}
        }
    }

    /// The machine at the other end, if it is known.
    pub(super) fn host(&self) -> Option<Host> {
        match self {
            Self::Tcp(stream) => {
                let own = stream.local_addr().ok().map(|own| own.ip());
                stream.peer_addr().ok().map(|peer| Host::at(peer.ip(), own))
            }
            #[cfg(unix)]
            Self::Unix(_) => Some(Host::HERE),
        }
    }

    /// Lets the socket go.
    pub(super) fn close(mut self, registry: &Registry) {
        // It is closed in any case; a registration that cannot be undone goes with it.
        let _ = registry.deregister(self.source());
    }

    /// A request is one small write that must not wait for another. It also decides what becomes of
    /// a removal when the connection is reset right behind it: written at once, it arrives.
    fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nodelay(true),
            #[cfg(unix)]
            Self::Unix(_) => Ok(()),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A target that needs no name to be resolved.
pub(super) fn literal(address: &Address) -> Option<Target<'_>> {
    match address {
        Address::Tcp { host, port } => {
            let host = host.parse().ok()?;
            Some(Target::Tcp(SocketAddr::new(host, *port)))
        }
        Address::Unix { path } => Some(Target::Unix(path)),
    }
}
