//! The connection to one node: its socket is opened and closed as the session requires.

mod connecting;
#[cfg(feature = "groups")]
mod inquiring;

use super::addresses::{Addresses, Finding, Last, Lookups};
use super::locate::{Found, Location};
use super::stream::{Received, Stream};
use super::{ConnectOptions, Endpoint};
use crate::clock;
#[cfg(feature = "groups")]
use crate::clock::Time;
use crate::engine::{NODES_MAX, Node};
use crate::node::{Conversation, Whereabouts};
use crate::node_url::Address;
pub(super) use connecting::Io;
#[cfg(any(feature = "groups", feature = "zookeeper"))]
pub(super) use connecting::unreachable;
use mio::event::Event;
use mio::{Registry, Token};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// A socket's token is its node's index plus a multiple of this. The waker has the first number
/// that is not an index.
const TOKENS: usize = NODES_MAX + 1;

/// How often one socket is read before the next node's socket.
const READS_MAX: usize = 16;

/// The connection to one node, open or not.
#[derive(Debug)]
pub(super) struct NodeConnection {
    node: Node,
    endpoint: Endpoint,
    options: ConnectOptions,
    socket: Option<OpenSocket>,
    lookups: Lookups,
    /// Where the node was found for the next attempts to connect.
    found: Option<Addresses>,
    last: Last,
    /// How many sockets there were.
    sockets: usize,
    /// Until when the servers of the group may still answer that were asked last.
    #[cfg(feature = "groups")]
    inquiry_until: Option<Time>,
}

#[derive(Debug)]
struct OpenSocket {
    stream: Stream,
    token: Token,
    /// The address, if the node's name has it.
    address: Option<SocketAddr>,
    /// Is it connected, and the TLS handshake, if there is one, completed?
    is_connected: bool,
    is_securing: bool,
    has_received: bool,
    /// The last known readiness. Events are edge-triggered: readiness is reported once, so it must
    /// be remembered until a read or write would block.
    is_readable: bool,
    is_writable: bool,
    /// Something was written since the last event that told of bytes: the answer causes another.
    is_event_due: bool,
    /// The peer has closed its side. Then a short read does not mean that the socket is drained:
    /// the end of the stream is still to be read.
    is_finished: bool,
}

impl NodeConnection {
    pub(super) fn new(node: Node, endpoint: Endpoint, options: ConnectOptions) -> Self {
        Self {
            node,
            lookups: Lookups::of(&endpoint.address),
            endpoint,
            options,
            socket: None,
            found: None,
            last: Last::default(),
            sockets: 0,
            #[cfg(feature = "groups")]
            inquiry_until: None,
        }
    }

    /// The index of the node whose socket has this token.
    pub(super) fn index(token: Token) -> usize {
        token.0 % TOKENS
    }

    pub(super) fn record_readiness(&mut self, event: &Event) {
        if let Some(socket) = self.socket.as_mut().filter(|it| it.token == event.token()) {
            socket.record_readiness(event);
        }
    }

    /// Has the peer closed its side?
    pub(super) fn is_finished(&self) -> bool {
        self.socket
            .as_ref()
            .is_some_and(|socket| socket.is_finished)
    }

    /// Are there unread bytes, as far as is known?
    pub(super) fn is_readable(&self) -> bool {
        self.socket
            .as_ref()
            .is_some_and(|socket| socket.is_connected && socket.is_readable)
    }

    /// Are there unread bytes of which no event tells any more? [`read`](Self::read) has left them,
    /// or an earlier poll has told of them and nobody has read. On Windows no event follows at all
    /// before all is read.
    pub(super) fn is_overlooked(&self) -> bool {
        self.is_readable()
            && self
                .socket
                .as_ref()
                .is_some_and(|socket| cfg!(windows) || !socket.is_event_due)
    }

    /// Takes what a thread has found out.
    pub(super) fn found_out(
        &mut self,
        finding: Finding,
        conversation: &mut impl Conversation,
        registry: &Registry,
    ) {
        match finding {
            Finding::Place(found) => self.resolved(found, conversation, registry),
            #[cfg(feature = "groups")]
            Finding::History { server, master } => {
                conversation.heard(self.node, clock::now(), &server, &master);
            }
            #[cfg(feature = "groups")]
            Finding::AllAsked => self.inquiry_until = None,
        }
    }

    pub(super) fn resolved(
        &mut self,
        found: Found,
        conversation: &mut impl Conversation,
        registry: &Registry,
    ) {
        self.lookups.ended();
        match found {
            Ok(location) if self.socket.is_none() => self.use_for_next(location, conversation),
            Ok(location) => {
                if self.is_left_for(&location, conversation) {
                    self.close(registry);
                    self.use_for_next(location, conversation);
                }
            }
            Err(problem) if self.socket.is_none() => {
                conversation.closed(clock::now(), self.node, problem);
            }
            // Nobody can say where the master is: the connection stays.
            Err(_) => {}
        }
    }

    fn use_for_next(&mut self, location: Location, conversation: &mut impl Conversation) {
        conversation.located(self.node, location.epoch, location.asked_at);
        if let Some(place) = &location.announced {
            conversation.announced(self.node, Arc::clone(place));
        }
        self.found = Some(Addresses::new(location, self.last, self.options.timeout));
    }

    /// Is the present connection given up for what was found meanwhile?
    fn is_left_for(&self, location: &Location, conversation: &mut impl Conversation) -> bool {
        let address = self.socket.as_ref().and_then(|socket| socket.address);
        let is_same = address.is_some_and(|address| location.addresses.contains(&address));
        let it_is = match self.endpoint.address {
            _ if !is_same => Whereabouts::Elsewhere,
            Address::Sentinel { .. } | Address::Cluster { .. } => Whereabouts::Here,
            Address::Tcp { .. } | Address::Unix { .. } => Whereabouts::SameAddress,
        };
        let Location {
            epoch, asked_at, ..
        } = *location;
        conversation.named(self.node, clock::now(), epoch, asked_at, it_is)
    }

    /// Reads the bytes that have arrived and passes them to the session. It reads at most
    /// [`READS_MAX`] times, because a node that sends without end must not delay the others.
    pub(super) fn read(&mut self, buffer: &mut [u8], conversation: &mut impl Conversation) {
        for reads in 0.. {
            let Some(socket) = &mut self.socket else {
                return;
            };
            if !(socket.is_connected && socket.is_readable) || reads == READS_MAX {
                return;
            }
            let result = socket.stream.read(buffer);
            // After the read: a time before it would make a round look shorter than it was.
            let now = clock::now();
            match result {
                Ok(Received::End) => {
                    let problem = socket.loss(None, conversation.secure_scheme());
                    conversation.closed(now, self.node, problem);
                    return;
                }
                Ok(Received::Bytes { count, is_drained }) => {
                    // Nothing is left: the next byte causes an event.
                    socket.is_readable = !is_drained || socket.is_finished;
                    if count > 0 {
                        socket.has_received = true;
                        conversation.received(now, self.node, &buffer[..count]);
                    }
                    if conversation.is_down(self.node) {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_readable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let problem = socket.loss(Some(&error), conversation.secure_scheme());
                    conversation.closed(now, self.node, problem);
                    return;
                }
            }
        }
    }

    /// Writes the session's pending output, and what is encrypted and was not sent.
    pub(super) fn write(&mut self, conversation: &mut impl Conversation) {
        while let Some(socket) = &mut self.socket {
            let output = conversation.output(self.node);
            let is_any = !output.is_empty() || socket.stream.has_unsent();
            if !socket.is_connected || !socket.is_writable || !is_any {
                return;
            }
            match socket.stream.write(output) {
                Ok(count) => {
                    socket.is_event_due |= count > 0;
                    let is_whole = count == output.len();
                    conversation.wrote(self.node, count);
                    if is_whole && !socket.stream.has_unsent() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.is_writable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let problem = socket.loss(Some(&error), conversation.secure_scheme());
                    conversation.closed(clock::now(), self.node, problem);
                    return;
                }
            }
        }
    }
}

impl OpenSocket {
    fn record_readiness(&mut self, event: &Event) {
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.is_readable = true;
            self.is_event_due = false;
        }
        self.is_writable |= event.is_writable() || event.is_write_closed() || event.is_error();
        self.is_finished |= event.is_read_closed() || event.is_error();
    }
}

// Unix: a server whose queue is full is made by calls of that.
#[cfg(all(test, unix))]
mod tests;
