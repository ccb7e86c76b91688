//! The connection to one node: its socket is opened and closed as the session requires.

use super::resolver::{Found, Resolver};
use super::stream::{Stream, Target, literal};
use crate::clock;
use crate::engine::Node;
use crate::node::{NodeError, Phase, Rounds};
use crate::node_url::Address;
use mio::event::Event;
use mio::{Registry, Token};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// How often one socket is read before the next node's socket.
const READS_MAX: usize = 16;

/// The connection to one node, open or not.
#[derive(Debug)]
pub(super) struct Connection {
    node: Node,
    address: Address,
    socket: Option<Socket>,
    lookup: Lookup,
}

#[derive(Debug)]
struct Socket {
    stream: Stream,
    is_connected: bool,
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
    pub(super) fn new(node: Node, address: Address) -> Self {
        Self { node, address, socket: None, lookup: Lookup::None }
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
                Ok(0) => {
                    let text = "closed by the server".to_owned();
                    rounds.closed(now, self.node, NodeError::Disconnected(text));
                    return;
                }
                Ok(count) => {
                    // A short read: the socket is drained, and the next byte causes an event.
                    socket.is_readable = count == buffer.len() || socket.is_finished;
                    rounds.received(now, self.node, &buffer[..count]);
                    if rounds.session(self.node).is_down() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_readable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    rounds.closed(now, self.node, NodeError::Disconnected(error.to_string()));
                    return;
                }
            }
        }
    }

    /// Writes the session's pending output.
    pub(super) fn write<W>(&mut self, rounds: &mut Rounds<W>) {
        while let Some(socket) = &mut self.socket {
            let session = rounds.session(self.node);
            if !socket.is_connected || !socket.is_writable || session.output().is_empty() {
                return;
            }
            match socket.stream.write(session.output()) {
                Ok(count) => session.wrote(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_writable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let error = NodeError::Disconnected(error.to_string());
                    rounds.closed(clock::now(), self.node, error);
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
        let progress = self.socket.as_ref().map(|socket| (socket.is_connected, socket.is_writable));
        match progress {
            None => self.connect(rounds, registry, resolver),
            Some((false, true)) => self.finish_connecting(rounds, registry, resolver),
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
        let target = match (literal(&self.address), &mut self.lookup) {
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
        match Stream::connect(&target, registry, Token(self.node.index())) {
            Ok(stream) => {
                let session = rounds.session(self.node);
                session.connecting(clock::now(), Phase::Connecting);
                self.socket = Some(Socket {
                    stream,
                    is_connected: false,
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
        let (Address::Tcp { host, port }, Lookup::None) = (&self.address, &self.lookup) else {
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
                socket.is_connected = true;
                rounds.session(self.node).connected(clock::now());
                rounds.session(self.node).leads_to(socket.stream.host());
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
        let error = NodeError::Unreachable { kind: error.kind(), text: error.to_string() };
        rounds.closed(clock::now(), self.node, error);
    }
}

#[cfg(test)]
mod tests;
