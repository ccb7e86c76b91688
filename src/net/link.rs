//! One node's socket, kept in step with what its session wants.

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

/// How often one socket is read before it is another's turn.
const READS_MAX: usize = 16;

/// One node's socket, or the lack of one.
#[derive(Debug)]
pub(super) struct Link {
    node: Node,
    address: Address,
    socket: Option<Socket>,
    lookup: Lookup,
}

#[derive(Debug)]
struct Socket {
    stream: Stream,
    is_connected: bool,
    /// What the socket was last known to be ready for. Events are edges: what is not taken then
    /// must be remembered.
    is_readable: bool,
    is_writable: bool,
    /// There was more to read when it was another node's turn.
    has_more: bool,
    /// The peer has finished. Then a short read is no proof that there is nothing more to learn.
    is_finished: bool,
}

#[derive(Debug)]
enum Lookup {
    None,
    Running,
    /// Addresses that have not been tried.
    Found(VecDeque<SocketAddr>),
}

impl Link {
    pub(super) fn new(node: Node, address: Address) -> Self {
        Self { node, address, socket: None, lookup: Lookup::None }
    }

    /// Notes what the socket is ready for.
    pub(super) fn note(&mut self, event: &Event) {
        if let Some(socket) = &mut self.socket {
            socket.is_readable |= event.is_readable() || event.is_read_closed() || event.is_error();
            socket.is_writable |=
                event.is_writable() || event.is_write_closed() || event.is_error();
            socket.is_finished |= event.is_read_closed() || event.is_error();
        }
    }

    /// Is there a connection that the peer has ended?
    pub(super) fn is_finished(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.is_finished)
    }

    /// Has something arrived that has not been read, as far as is known?
    pub(super) fn is_readable(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.is_connected && socket.is_readable)
    }

    pub(super) fn node(&self) -> Node {
        self.node
    }

    /// Is there more to read than was read in one go?
    pub(super) fn has_more(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.has_more)
    }

    /// A lookup is done.
    pub(super) fn found<W>(&mut self, found: Found, rounds: &mut Rounds<W>) {
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

    /// Reads what there is, and passes it on; no more than so much at a time, or a node that sends
    /// without end would keep everyone else waiting.
    pub(super) fn read<W>(&mut self, buffer: &mut [u8], rounds: &mut Rounds<W>) {
        for reads in 0.. {
            let Some(socket) = &mut self.socket else { return };
            socket.has_more = socket.is_connected && socket.is_readable;
            if !socket.has_more || reads == READS_MAX {
                return;
            }
            let result = socket.stream.read(buffer);
            // After the read: a grant must not look younger than it is.
            let now = clock::now();
            match result {
                Ok(0) => {
                    let text = "closed by the server".to_owned();
                    rounds.closed(now, self.node, NodeError::Disconnected(text));
                    return;
                }
                Ok(count) => {
                    // Less than was asked for: drained, and the next byte is a new edge.
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

    /// Writes what there is to write.
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
                    let problem = NodeError::Disconnected(error.to_string());
                    rounds.closed(clock::now(), self.node, problem);
                    return;
                }
            }
        }
    }

    /// Closes, opens or finishes opening the socket, as the session wants it.
    pub(super) fn align<W>(
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
        let waits = self.socket.as_ref().map(|socket| (socket.is_connected, socket.is_writable));
        match waits {
            None => self.connect(rounds, registry, resolver),
            Some((false, true)) => self.finish_connecting(rounds, registry, resolver),
            Some(_) => {}
        }
    }

    /// Lets the socket go, if there is one.
    pub(super) fn close(&mut self, registry: &Registry) {
        if let Some(socket) = self.socket.take() {
            socket.stream.close(registry);
            // What was found is used up with the connection: the name may mean another host by now.
            if socket.is_connected && !matches!(self.lookup, Lookup::Running) {
                self.lookup = Lookup::None;
            }
        }
    }

    /// Begins to connect to the next address, or to find out what the addresses are.
    fn connect<W>(&mut self, rounds: &mut Rounds<W>, registry: &Registry, resolver: &Resolver) {
        let target = match (literal(&self.address), &mut self.lookup) {
            (Some(target), _) => target,
            (None, Lookup::Found(addresses)) => match addresses.pop_front() {
                Some(address) => Target::Tcp(address),
                None => {
                    // All have been tried.
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
            Err(error) => self.failed(&error, rounds, registry, resolver),
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
                let text = format!("no thread to look it up: {error}");
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
            }
            Some(Err(error)) => {
                self.close(registry);
                self.failed(&error, rounds, registry, resolver);
            }
        }
    }

    /// A connection could not be made: tries the next address, if the name has several.
    fn failed<W>(
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
        let problem = NodeError::Unreachable { kind: error.kind(), text: error.to_string() };
        rounds.closed(clock::now(), self.node, problem);
    }
}

#[cfg(test)]
mod tests;
