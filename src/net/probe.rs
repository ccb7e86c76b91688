//! A connection that is made to ask one question, and that blocks: servers of an ensemble are asked
//! about themselves by it, and those that name the master of a replicated group.

use super::connection::unreachable;
use super::descriptors;
use super::stream::{Received, TlsSession, TlsTarget};
use crate::clock::{self, Time};
#[cfg(feature = "zookeeper")]
use crate::node::Host;
use crate::node::{NodeError, Phase};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

pub(super) struct ProbeConnection {
    socket: TcpStream,
    tls: Option<TlsSession>,
    until: Time,
}

impl ProbeConnection {
    /// Connects. The resolver of the operating system may take longer than `until`; nothing else
    /// does.
    pub(super) fn connect(
        place: (&str, u16),
        tls: Option<&TlsTarget>,
        until: Time,
    ) -> Result<Self, NodeError> {
        descriptors::keep_standard_ones();
        let addresses: Vec<_> = match place.to_socket_addrs() {
            Ok(addresses) => addresses.collect(),
            Err(error) => return Err(NodeError::Unresolved(error.to_string())),
        };
        Self::connect_to(&addresses, place.0, tls, until)
    }

    /// The same where the addresses of this host are known.
    pub(super) fn connect_to(
        addresses: &[SocketAddr],
        host: &str,
        tls: Option<&TlsTarget>,
        until: Time,
    ) -> Result<Self, NodeError> {
        descriptors::keep_standard_ones();
        let socket = connect(addresses, until)?;
        let session = tls.map(|tls| TlsSession::new(&tls.at(host)));
        let tls = session.transpose().map_err(|error| unreachable(&error))?;
        let mut probe = Self { socket, tls, until };
        probe
            .secure()
            .map_err(|error| failure(&error, Phase::Securing))?;
        Ok(probe)
    }

    /// From now on, it has half of the time that was left.
    #[cfg(feature = "groups")]
    pub(super) fn halve_time_left(&mut self) {
        let now = clock::now();
        self.until = now.after(self.until.since(now) / 2);
    }

    /// The address at the other end, if it is known.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.socket.peer_addr().ok().map(|peer| peer.ip())
    }

    /// The machine at the other end, if it is known.
    #[cfg(feature = "zookeeper")]
    pub(super) fn host(&self) -> Option<Host> {
        let own = self.socket.local_addr().ok().map(|own| own.ip());
        self.peer().map(|peer| Host::at(peer, own))
    }

    /// Makes the handshake of TLS, if there is one.
    fn secure(&mut self) -> io::Result<()> {
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.is_handshaking()) {
            set_timeouts(&self.socket, self.until)?;
            tls.flush(&mut self.socket)?;
            if tls.is_handshaking() {
                tls.receive(&mut self.socket)?;
            }
        }
        Ok(())
    }

    /// Asks, and reads until the answer is enough, or ends.
    pub(super) fn ask(
        &mut self,
        question: &[u8],
        is_enough: impl FnMut(&[u8]) -> bool,
    ) -> Result<Vec<u8>, NodeError> {
        self.exchange(question, is_enough)
            .map_err(|error| failure(&error, Phase::Answering))
    }

    fn exchange(
        &mut self,
        question: &[u8],
        mut is_enough: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<Vec<u8>> {
        set_timeouts(&self.socket, self.until)?;
        match &mut self.tls {
            None => self.socket.write_all(question)?,
            Some(tls) => {
                // The first bytes of a connection always have room.
                tls.write(&mut self.socket, question)?;
                tls.flush(&mut self.socket)?;
            }
        }
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while !is_enough(&answer) {
            set_timeouts(&self.socket, self.until)?;
            let received = match &mut self.tls {
                None => self.socket.read(&mut buffer),
                Some(tls) => match tls.read(&mut self.socket, &mut buffer) {
                    Ok(Received::Bytes { count: 0, .. }) => continue,
                    Ok(Received::Bytes { count, .. }) => Ok(count),
                    Ok(Received::End) => Ok(0),
                    Err(error) => Err(error),
                },
            };
            match received {
                Ok(0) => break,
                Ok(count) => answer.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A server may close the connection without a word of TLS.
                Err(error) if is_timeout(&error) || answer.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(answer)
    }
}

/// A connection to the first of these addresses that accepts one. Each gets its part of the time.
fn connect(addresses: &[SocketAddr], until: Time) -> Result<TcpStream, NodeError> {
    let mut last = NodeError::Unresolved("no address".to_owned());
    for (index, address) in addresses.iter().enumerate() {
        let count = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let Some(left) = left(until) else {
            return Err(NodeError::TimedOut(Phase::Connecting));
        };
        match TcpStream::connect_timeout(address, (left / count).max(TIMEOUT_MIN)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = failure(&error, Phase::Connecting),
        }
    }
    Err(last)
}

/// The shortest timeout of a socket: zero would be none.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// How much time is left, if any.
fn left(until: Time) -> Option<Duration> {
    Some(until.since(clock::now())).filter(|left| !left.is_zero())
}

fn set_timeouts(socket: &TcpStream, until: Time) -> io::Result<()> {
    let left = left(until).ok_or(ErrorKind::TimedOut)?.max(TIMEOUT_MIN);
    socket.set_read_timeout(Some(left))?;
    socket.set_write_timeout(Some(left))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn failure(error: &io::Error, phase: Phase) -> NodeError {
    match phase {
        _ if is_timeout(error) => NodeError::TimedOut(phase),
        Phase::Answering => NodeError::Disconnected(error.to_string()),
        _ => unreachable(error),
    }
}
