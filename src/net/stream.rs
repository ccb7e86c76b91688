//! A connection's socket, with or without TLS. Nothing outside this module knows what kind it is.

#[cfg(feature = "tls")]
mod tls;

use super::{descriptors, sockets};
#[cfg(feature = "diagnostics")]
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
use std::time::Duration;
#[cfg(not(feature = "tls"))]
pub(super) use tls::TlsSession;
#[cfg(not(feature = "tls"))]
pub(crate) use tls::TlsTarget;
#[cfg(feature = "tls")]
pub use tls::{TlsSession, TlsTarget, UNSENT_MAX};

/// An address that a socket can connect to at once: its host name, if it had one, is resolved.
#[derive(Clone, Debug)]
pub(super) enum Target<'a> {
    Tcp(SocketAddr),
    Unix(&'a Path),
}

/// A stream of bytes to and from a node. It never blocks.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    tls: Option<Box<TlsSession>>,
}

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    unreachable_pub,
    reason = "with the feature `tls`, a fuzz target reads a stream of TLS"
)]
#[allow(clippy::exhaustive_enums, reason = "it is not part of the public API")]
pub enum Received {
    /// The first bytes of the buffer. There may be none, if what has arrived was not for us but for
    /// TLS.
    Bytes {
        /// How many.
        count: usize,
        /// Nothing more is there, and what arrives next causes an event.
        is_drained: bool,
    },
    /// The peer has ended the stream.
    End,
}

impl Stream {
    /// Begins to connect. The socket becomes writable when that has succeeded or failed.
    pub(super) fn connect(
        target: &Target<'_>,
        tls: Option<&TlsTarget>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let tls = tls.map(TlsSession::new).transpose()?.map(Box::new);
        Ok(Self {
            socket: Socket::connect(target, registry, token)?,
            tls,
        })
    }

    /// Has the socket been connected? `None` if that is not known yet: a wake-up is only a hint.
    ///
    /// A request is one small write that must not wait for another, so a connected socket is set to
    /// send at once. It also decides what becomes of a removal when the connection is reset right
    /// behind it: written at once, it arrives.
    pub(super) fn is_connected(&self) -> Option<io::Result<()>> {
        let (error, peer) = match &self.socket {
            Socket::Tcp(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
            #[cfg(unix)]
            Socket::Unix(stream) => (stream.take_error(), stream.peer_addr().map(drop)),
        };
        match (error, peer, &self.socket) {
            (Ok(Some(error)) | Err(error), ..) => Some(Err(error)),
            (Ok(None), Ok(()), Socket::Tcp(stream)) => Some(stream.set_nodelay(true)),
            #[cfg(unix)]
            (Ok(None), Ok(()), Socket::Unix(_)) => Some(Ok(())),
            (Ok(None), Err(error), _) if error.kind() == io::ErrorKind::NotConnected => None,
            (Ok(None), Err(error), _) => Some(Err(error)),
        }
    }

    /// Sets the options that a TCP socket has.
    pub(super) fn set_options(&self, keepalive: Option<Duration>) {
        match &self.socket {
            Socket::Tcp(stream) => sockets::set_options(stream, keepalive),
            #[cfg(unix)]
            Socket::Unix(_) => {}
        }
    }

    /// The machine at the other end, if it is known.
    #[cfg(feature = "diagnostics")]
    pub(super) fn host(&self) -> Option<Host> {
        match &self.socket {
            Socket::Tcp(stream) => {
                let own = stream.local_addr().ok().map(|own| own.ip());
                stream.peer_addr().ok().map(|peer| Host::at(peer.ip(), own))
            }
            #[cfg(unix)]
            Socket::Unix(_) => Some(Host::HERE),
        }
    }

    /// Is there still a handshake to be made? Until it is, only [`flush`](Self::flush) and
    /// [`receive`](Self::receive) may be called.
    pub(super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Might the server expect TLS, and gets none?
    pub(super) fn lacks_tls(&self) -> bool {
        self.tls.is_none() && matches!(self.socket, Socket::Tcp(_))
    }

    /// Reads and decrypts what has arrived, for a handshake. Returns whether the socket is drained.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            Some(tls) => tls.receive(&mut self.socket),
            None => Ok(true),
        }
    }

    /// Are there decrypted bytes to be read, without any event?
    pub(super) fn has_decrypted(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_decrypted())
    }

    /// Reads, with at most one call to the operating system.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        if let Some(tls) = &mut self.tls {
            return tls.read(&mut self.socket, buffer);
        }
        Ok(match self.socket.read(buffer)? {
            0 => Received::End,
            count => Received::Bytes {
                count,
                is_drained: count < buffer.len(),
            },
        })
    }

    /// Writes some of these bytes, and returns how many. Over TLS they may have been encrypted and
    /// not all sent: see [`has_unsent`](Self::has_unsent).
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.write(&mut self.socket, bytes),
            None => self.socket.write(bytes),
        }
    }

    /// Are there encrypted bytes that are to be [flushed](Self::flush) when the socket is writable?
    pub(super) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.flush(&mut self.socket),
            None => Ok(()),
        }
    }

    /// Lets the socket go.
    pub(super) fn close(mut self, registry: &Registry) {
        if let Some(tls) = &mut self.tls {
            tls.finish(&mut self.socket);
        }
        // It is closed in any case; a registration that cannot be undone goes with it.
        let _ = registry.deregister(self.socket.source());
    }
}

/// A socket that never blocks.
#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Socket {
    /// Begins to connect. The socket becomes writable when that has succeeded or failed.
    fn connect(target: &Target<'_>, registry: &Registry, token: Token) -> io::Result<Self> {
        descriptors::keep_standard_ones();
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
        registry.register(
            stream.source(),
            token,
            Interest::READABLE | Interest::WRITABLE,
        )?;
        Ok(stream)
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
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
        Address::Sentinel { .. } | Address::Cluster { .. } => None,
    }
}

#[cfg(not(feature = "tls"))]
mod tls {
    //! What stands in the place of TLS in a build without the feature `tls`: types without values.

    use super::Received;
    use std::io::{self, Read, Write};

    /// There is none: a URL that needs TLS is refused.
    #[derive(Clone, Debug)]
    pub(crate) enum TlsTarget {}

    impl TlsTarget {
        pub(crate) fn of_each_host(self) -> Self {
            match self {}
        }

        pub(in crate::net) fn at(&self, _: &str) -> Self {
            match *self {}
        }
    }

    /// There is none.
    #[derive(Debug)]
    pub(in crate::net) enum TlsSession {}

    impl TlsSession {
        pub(in crate::net) fn new(target: &TlsTarget) -> io::Result<Self> {
            match *target {}
        }

        pub(in crate::net) fn is_handshaking(&self) -> bool {
            match *self {}
        }

        pub(in crate::net) fn has_decrypted(&self) -> bool {
            match *self {}
        }

        pub(in crate::net) fn has_unsent(&self) -> bool {
            match *self {}
        }

        pub(in crate::net) fn receive(&mut self, _: &mut impl Read) -> io::Result<bool> {
            match *self {}
        }

        pub(in crate::net) fn read(
            &mut self,
            _: &mut impl Write,
            _: &mut [u8],
        ) -> io::Result<Received> {
            match *self {}
        }

        pub(in crate::net) fn write(&mut self, _: &mut impl Write, _: &[u8]) -> io::Result<usize> {
            match *self {}
        }

        pub(in crate::net) fn flush(&mut self, _: &mut impl Write) -> io::Result<()> {
            match *self {}
        }

        pub(in crate::net) fn finish(&mut self, _: &mut impl Write) {
            match *self {}
        }
    }
}
