//! Making a connection: the name, its addresses in parallel, the socket.

use super::securing::unreachable;
use super::{Connection, Lookup, Socket, TOKENS};
use crate::clock::{self, Time};
use crate::net::conversation::Conversation;
use crate::net::resolver::Resolver;
use crate::net::stream::{Stream, Target, literal};
use crate::node::{NodeError, Phase};
use crate::node_url::Address;
use mio::{Registry, Token};
use std::io;

impl Connection {
    /// Closes, opens or finishes opening the socket, as the session requires.
    pub(in crate::net) fn follow_session(
        &mut self,
        conversation: &mut impl Conversation,
        registry: &Registry,
        resolver: &Resolver,
    ) {
        if conversation.is_down(self.node) {
            self.close(registry);
            let now = clock::now();
            if conversation.wants_connection(self.node, now) {
                conversation.connecting(self.node, now, Phase::Connecting);
                self.connect(conversation, registry, resolver);
            }
            return;
        }
        if let Some(first) = self.earlier.take_connected(registry) {
            self.release(registry);
            self.socket = Some(first);
        }
        match &self.socket {
            None => self.connect(conversation, registry, resolver),
            Some(socket) if socket.is_securing => self.secure(conversation),
            Some(socket) if !socket.is_connected => {
                if socket.is_writable {
                    self.finish_connecting(conversation, registry, resolver);
                }
            }
            Some(_) if self.history.is_open() => {
                if conversation.phase(self.node) == Phase::Answering {
                    self.history.greeted();
                }
            }
            Some(_) => {}
        }
        if self.next_deadline().is_some_and(|next_at| clock::now() >= next_at) {
            // This address has had its part of the time. It may still be the first to answer.
            self.earlier.extend(self.socket.take(), registry);
            self.connect(conversation, registry, resolver);
        }
    }

    /// When the next address of the name is to be tried although others may still answer.
    pub(in crate::net) fn next_deadline(&self) -> Option<Time> {
        match (&self.socket, &self.lookup) {
            (Some(socket), Lookup::Found(addresses)) if !socket.has_answered() => {
                addresses.next_at()
            }
            _ => None,
        }
    }

    /// Closes all sockets, if there are any.
    pub(in crate::net) fn close(&mut self, registry: &Registry) {
        if self.release(registry) {
            self.earlier.clear(registry);
            self.history.closed();
            // The name is resolved again for the next connection: it may mean another host by then.
            if !matches!(self.lookup, Lookup::Running) {
                self.lookup = Lookup::None;
            }
        }
    }

    /// Closes the socket. Returns whether there was one.
    fn release(&mut self, registry: &Registry) -> bool {
        self.socket.take().map(|socket| socket.stream.close(registry)).is_some()
    }

    /// Begins to connect to the next address, or to resolve the name.
    fn connect(
        &mut self,
        conversation: &mut impl Conversation,
        registry: &Registry,
        resolver: &Resolver,
    ) {
        let (target, address) = match (literal(&self.endpoint.address), &mut self.lookup) {
            (Some(target), _) => (target, None),
            (None, Lookup::Found(addresses)) => match addresses.next(clock::now()) {
                Some(address) => (Target::Tcp(address), Some(address)),
                None => {
                    // All addresses were tried.
                    self.lookup = Lookup::None;
                    return self.resolve(conversation, resolver);
                }
            },
            (None, Lookup::None | Lookup::Running) => return self.resolve(conversation, resolver),
        };
        self.sockets = self.sockets.wrapping_add(1) % (usize::MAX / TOKENS);
        let token = Token(self.node.index() + TOKENS * self.sockets);
        let tls = self.endpoint.tls.as_ref();
        match Stream::connect(&target, tls, registry, token) {
            Ok(stream) => {
                conversation.connecting(self.node, clock::now(), Phase::Connecting);
                self.socket = Some(Socket {
                    stream,
                    token,
                    address,
                    is_connected: false,
                    is_securing: false,
                    has_received: false,
                    is_readable: false,
                    is_writable: false,
                    has_more: false,
                    is_finished: false,
                });
            }
            Err(error) => self.connect_failed(&error, conversation, registry, resolver),
        }
    }

    fn resolve(&mut self, conversation: &mut impl Conversation, resolver: &Resolver) {
        conversation.connecting(self.node, clock::now(), Phase::Resolving);
        let (Address::Tcp { host, port }, Lookup::None) = (&self.endpoint.address, &self.lookup)
        else {
            return;
        };
        match resolver.look_up(self.node.index(), host, *port) {
            Ok(()) => self.lookup = Lookup::Running,
            Err(error) => {
                let text = format!("no thread for the lookup: {error}");
                conversation.closed(clock::now(), self.node, NodeError::Unresolved(text));
            }
        }
    }

    fn finish_connecting(
        &mut self,
        conversation: &mut impl Conversation,
        registry: &Registry,
        resolver: &Resolver,
    ) {
        let Some(socket) = &mut self.socket else { return };
        match socket.stream.is_connected() {
            None => socket.is_writable = false,
            Some(Ok(())) => {
                socket.is_securing = true;
                socket.stream.set_options(self.options.keepalive);
                self.history.connected(socket.address);
                self.earlier.clear(registry);
                self.secure(conversation);
            }
            Some(Err(error)) => {
                self.release(registry);
                self.connect_failed(&error, conversation, registry, resolver);
            }
        }
    }

    /// Connecting failed: tries the next address of the name, or waits for an earlier one.
    fn connect_failed(
        &mut self,
        error: &io::Error,
        conversation: &mut impl Conversation,
        registry: &Registry,
        resolver: &Resolver,
    ) {
        if matches!(&self.lookup, Lookup::Found(addresses) if addresses.next_at().is_some()) {
            return self.connect(conversation, registry, resolver);
        }
        self.socket = self.earlier.pop();
        if self.socket.is_some() {
            return;
        }
        if !matches!(self.lookup, Lookup::Running) {
            self.lookup = Lookup::None;
        }
        conversation.closed(clock::now(), self.node, unreachable(error));
    }
}
