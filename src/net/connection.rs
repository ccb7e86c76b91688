//! The connection to one node: its socket is opened and closed as the session requires.

mod securing;

use super::Endpoint;
use super::resolver::{Found, Resolver};
use super::stream::{Received, Stream, Target, literal};
use crate::clock;
use crate::engine::Node;
use crate::node::{NodeError, Phase, Rounds};
use crate::node_url::Address;
use mio::event::Event;
use mio::{Registry, Token};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// How often one socket is read before the next node's socket.
const READS_MAX: usize = 16;

/// The connection to one node, open or not.
#[derive(Debug)]
pub(super) struct Connection {
    node: Node,
    endpoint: Endpoint,
    socket: Option<Socket>,
    lookup: Lookup,
}

#[derive(Debug)]
struct Socket {
    stream: Stream,
    /// Is it connected, and the TLS handshake, if there is one, completed?
    is_connected: bool,
    /// Is the TLS handshake running?
    is_securing: bool,
    /// Has the peer sent anything?
    has_received: bool,
    /// The last known readiness. Events are edge-triggered: readiness is reported once, so it must
    /// be remembered until a read or write would block.
    is_readable: bool,
    is_writable: bool,
    /// There was more to read after [`READS_MAX`] reads.
    has_more: bool,
    /// The peer has closed its side. Then a short read does not mean that the socket is drained:
    /// the end of the stream is still to be read.
    is_finished: bool,
}

#[derive(Debug)]
enum Lookup {
    None,
    Running,
    /// Addresses that were not tried yet.
    Found(VecDeque<SocketAddr>),
}

impl Connection {
    pub(super) fn new(node: Node, endpoint: Endpoint) -> Self {
        Self { node, endpoint, socket: None, lookup: Lookup::None }
    }

    pub(super) fn record_readiness(&mut self, event: &Event) {
        if let Some(socket) = &mut self.socket {
            socket.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
            socket.is_writable |=
                event.is_writable() || event.is_write_closed() || event.is_error();
            socket.is_finished |= event.is_read_closed() || event.is_error();
        }
    }

    /// Has the peer closed its side?
    pub(super) fn is_finished(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.is_finished)
    }

    /// Are there unread bytes, as far as is known?
    pub(super) fn is_readable(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.is_connected && socket.is_readable)
    }

    pub(super) fn node(&self) -> Node {
        self.node
    }

    /// Did the last [`read`](Self::read) leave bytes unread?
    pub(super) fn has_more(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.has_more)
    }

    /// Takes the result of a lookup.
    pub(super) fn resolved<W>(&mut self, found: Found, rounds: &mut Rounds<W>) {
        match found {
            Ok(addresses) if !addresses.is_empty() => {
                self.lookup = Lookup::Found(addresses.into());
            }
            other => {
                self.lookup = Lookup::None;
                let text = other.err().map_or("no address".to_owned(), |error| error.to_string());
                rounds.closed(clock::now(), self.node, NodeError::Unresolved(text));
            }
        }
    }

    /// Reads the bytes that have arrived and passes them to the session. It reads at most
    /// [`READS_MAX`] times, because a node that sends without end must not delay the others.
    pub(super) fn read<W>(&mut self, buffer: &mut [u8], rounds: &mut Rounds<W>) {
        for reads in 0.. {
            let Some(socket) = &mut self.socket else { return };
            socket.has_more = socket.is_connected && socket.is_readable;
            if !socket.has_more || reads == READS_MAX {
                return;
            }
            let result = socket.stream.read(buffer);
            // After the read: a time before it would make a round look shorter than it was.
            let now = clock::now();
            match result {
                Ok(Received::End) => {
                    let problem = socket.loss(None);
                    rounds.closed(now, self.node, problem);
                    return;
                }
                Ok(Received::Bytes { count, is_drained }) => {
                    // Nothing is left: the next byte causes an event.
                    socket.is_readable = !is_drained || socket.is_finished;
                    if count > 0 {
                        socket.has_received = true;
                        rounds.received(now, self.node, &buffer[..count]);
                    }
                    if rounds.session(self.node).is_down() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_readable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let problem = socket.loss(Some(&error));
                    rounds.closed(now, self.node, problem);
                    return;
                }
            }
        }
    }

    /// Writes the session's pending output, and what is encrypted and was not sent.
    pub(super) fn write<W>(&mut self, rounds: &mut Rounds<W>) {
        while let Some(socket) = &mut self.socket {
            let session = rounds.session(self.node);
            let is_any = !session.output().is_empty() || socket.stream.has_unsent();
            if !socket.is_connected || !socket.is_writable || !is_any {
                return;
            }
            match socket.stream.write(session.output()) {
                Ok(count) => session.wrote(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_writable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let problem = socket.loss(Some(&error));
                    rounds.closed(clock::now(), self.node, problem);
                    return;
                }
            }
        }
    }

    /// Closes, opens or finishes opening the socket, as the session requires.
    pub(super) fn follow_session<W>(
        &mut self,
        rounds: &mut Rounds<W>,
        registry: &Registry,
        resolver: &Resolver,
    ) {
        if rounds.session(self.node).is_down() {
            self.close(registry);
            let now = clock::now();
            if rounds.session(self.node).wants_connection(now) {
                rounds.session(self.node).connecting(now, Phase::Connecting);
                self.connect(rounds, registry, resolver);
            }
            return;
        }
        match &self.socket {
            None => self.connect(rounds, registry, resolver),
            Some(socket) if socket.is_securing => self.secure(rounds),
            Some(socket) if !socket.is_connected && socket.is_writable => {
                self.finish_connecting(rounds, registry, resolver);
            }
            Some(_) => {}
        }
    }

    /// Closes the socket, if there is one.
    pub(super) fn close(&mut self, registry: &Registry) {
        if let Some(socket) = self.socket.take() {
            socket.stream.close(registry);
            // The name is resolved again for the next connection: it may mean another host by then.
            if socket.is_connected && !matches!(self.lookup, Lookup::Running) {
                self.lookup = Lookup::None;
            }
        }
    }

    /// Begins to connect to the next address, or to resolve the name.
    fn connect<W>(&mut self, rounds: &mut Rounds<W>, registry: &Registry, resolver: &Resolver) {
        let target = match (literal(&self.endpoint.address), &mut self.lookup) {
            (Some(target), _) => target,
            (None, Lookup::Found(addresses)) => match addresses.pop_front() {
                Some(address) => Target::Tcp(address),
                None => {
                    // All addresses were tried.
                    self.lookup = Lookup::None;
                    return self.resolve(rounds, resolver);
                }
            },
            (None, Lookup::None | Lookup::Running) => return self.resolve(rounds, resolver),
        };
        let tls = self.endpoint.tls.as_ref();
        match Stream::connect(&target, tls, registry, Token(self.node.index())) {
            Ok(stream) => {
                let session = rounds.session(self.node);
                session.connecting(clock::now(), Phase::Connecting);
                self.socket = Some(Socket {
                    stream,
                    is_connected: false,
                    is_securing: false,
                    has_received: false,
                    is_readable: false,
                    is_writable: false,
                    has_more: false,
                    is_finished: false,
                });
            }
            Err(error) => self.connect_failed(&error, rounds, registry, resolver),
        }
    }

    fn resolve<W>(&mut self, rounds: &mut Rounds<W>, resolver: &Resolver) {
        rounds.session(self.node).connecting(clock::now(), Phase::Resolving);
        let (Address::Tcp { host, port }, Lookup::None) = (&self.endpoint.address, &self.lookup)
        else {
            return;
        };
        match resolver.look_up(self.node.index(), host, *port) {
            Ok(()) => self.lookup = Lookup::Running,
            Err(error) => {
                let text = format!("no thread for the lookup: {error}");
                rounds.closed(clock::now(), self.node, NodeError::Unresolved(text));
            }
        }
    }

    fn finish_connecting<W>(
        &mut self,
        rounds: &mut Rounds<W>,
        registry: &Registry,
        resolver: &Resolver,
    ) {
        let Some(socket) = &mut self.socket else { return };
        match socket.stream.is_connected() {
            None => socket.is_writable = false,
            Some(Ok(())) => {
                socket.is_securing = true;
                self.secure(rounds);
            }
            Some(Err(error)) => {
                self.close(registry);
                self.connect_failed(&error, rounds, registry, resolver);
            }
        }
    }

    /// Connecting failed: tries the next address, if the name has another.
    fn connect_failed<W>(
        &mut self,
        error: &io::Error,
        rounds: &mut Rounds<W>,
        registry: &Registry,
        resolver: &Resolver,
    ) {
        if matches!(&self.lookup, Lookup::Found(addresses) if !addresses.is_empty()) {
            return self.connect(rounds, registry, resolver);
        }
        if !matches!(self.lookup, Lookup::Running) {
            self.lookup = Lookup::None;
        }
        rounds.closed(clock::now(), self.node, securing::unreachable(error));
    }
}

#[cfg(test)]
mod tests;
