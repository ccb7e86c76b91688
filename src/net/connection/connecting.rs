//! Making a connection: the name, its addresses one after another, the socket, the TLS handshake;
//! and why a connection is lost.

use super::{NodeConnection, OpenSocket, TOKENS};
use crate::clock::{self, Time};
use crate::net::addresses::{Last, Resolver};
use crate::net::stream::{Stream, Target, literal};
use crate::node::{Conversation, NodeError, Phase, TlsError, Whereabouts};
use mio::{Registry, Token};
use std::io::{self, ErrorKind};

/// What the steps of connecting need besides the connection.
pub(in crate::net) struct Io<'a, C> {
    pub(in crate::net) conversation: &'a mut C,
    pub(in crate::net) registry: &'a Registry,
    pub(in crate::net) resolver: &'a Resolver,
}

impl NodeConnection {
    /// Closes, opens or finishes opening the socket, as the session requires.
    pub(in crate::net) fn follow_session<C: Conversation>(&mut self, io: &mut Io<'_, C>) {
        let look_at = io.conversation.looks_at(self.node);
        if look_at.is_some_and(|look_at| clock::now() >= look_at) {
            self.look_for_master(io);
        }
        #[cfg(feature = "groups")]
        self.inquire_if_due(io);
        if io.conversation.is_down(self.node) {
            self.close(io.registry);
            let now = clock::now();
            if io.conversation.wants_connection(self.node, now) {
                io.conversation
                    .connecting(self.node, now, Phase::Connecting);
                self.connect(io);
            }
            return;
        }
        match &self.socket {
            None => self.connect(io),
            Some(socket) if socket.is_securing => self.secure(io.conversation),
            Some(socket) if !socket.is_connected => {
                if socket.is_writable {
                    self.finish_connecting(io);
                }
            }
            Some(_) if !self.last.has_answered => {
                self.last.has_answered = io.conversation.phase(self.node) == Phase::Answering;
            }
            Some(_) => {}
        }
        let next_at = self.next_deadline();
        if next_at.is_some_and(|next_at| clock::now() >= next_at) {
            // This address has had its part of the time.
            self.release(io.registry);
            self.connect(io);
        }
    }

    /// When the next address of the name is to be tried, if this one has not answered by then.
    pub(in crate::net) fn next_deadline(&self) -> Option<Time> {
        match (&self.socket, &self.found) {
            (Some(socket), Some(addresses)) if !socket.has_answered() => addresses.next_at(),
            _ => None,
        }
    }

    /// Closes the socket, if there is one.
    pub(in crate::net) fn close(&mut self, registry: &Registry) {
        if self.release(registry) {
            // The name is resolved again for the next connection: it may mean another host by then.
            self.found = None;
        }
    }

    /// Closes the socket. Returns whether there was one.
    fn release(&mut self, registry: &Registry) -> bool {
        let Some(socket) = self.socket.take() else {
            return false;
        };
        socket.stream.close(registry);
        true
    }

    /// Begins to connect to the next address, or to resolve the name.
    fn connect<C: Conversation>(&mut self, io: &mut Io<'_, C>) {
        let (target, address) = match (literal(&self.endpoint.address), &mut self.found) {
            (Some(target), _) => (target, None),
            (None, Some(addresses)) => match addresses.next(clock::now()) {
                Some(address) => (Target::Tcp(address), Some(address)),
                None => {
                    // All addresses were tried.
                    self.found = None;
                    return self.resolve(io);
                }
            },
            (None, None) => return self.resolve(io),
        };
        self.sockets = self.sockets.wrapping_add(1) % (usize::MAX / TOKENS);
        let token = Token(self.node.index() + TOKENS * self.sockets);
        let configured = self.endpoint.tls.as_ref();
        let tls = match &self.found {
            Some(addresses) => configured.map(|tls| tls.at(&addresses.host)),
            None => configured.cloned(),
        };
        match Stream::connect(&target, tls.as_ref(), io.registry, token) {
            Ok(stream) => {
                io.conversation
                    .connecting(self.node, clock::now(), Phase::Connecting);
                self.socket = Some(OpenSocket {
                    stream,
                    token,
                    address,
                    is_connected: false,
                    is_securing: false,
                    has_received: false,
                    is_readable: false,
                    is_writable: false,
                    is_event_due: false,
                    is_finished: false,
                });
            }
            Err(error) => self.connect_failed(&error, io),
        }
    }

    fn resolve<C: Conversation>(&mut self, io: &mut Io<'_, C>) {
        io.conversation
            .connecting(self.node, clock::now(), Phase::Resolving);
        if let Err(error) = self.look_up(io.resolver) {
            let text = format!("no thread for the lookup: {error}");
            io.conversation
                .closed(clock::now(), self.node, NodeError::Unresolved(text));
        }
    }

    /// Begins to look up where the node is, unless that was begun a moment ago.
    fn look_up(&mut self, resolver: &Resolver) -> io::Result<()> {
        let now = clock::now();
        let timeout = self.options.timeout;
        let Some(lookup) = self.lookups.begin(now, timeout) else {
            return Ok(());
        };
        resolver.look_up(self.node.index(), &self.endpoint, timeout, lookup)?;
        self.lookups.began(now);
        Ok(())
    }

    /// Looks for the master of a group while the connection stays in use.
    fn look_for_master<C: Conversation>(&mut self, io: &mut Io<'_, C>) {
        let now = clock::now();
        io.conversation.looking(self.node, now);
        if literal(&self.endpoint.address).is_some() {
            io.conversation
                .named(self.node, now, 0, now, Whereabouts::SameAddress);
        } else {
            // Without a thread for it, the next search is due soon.
            let _ = self.look_up(io.resolver);
        }
    }

    fn finish_connecting<C: Conversation>(&mut self, io: &mut Io<'_, C>) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        match socket.stream.is_connected() {
            None => socket.is_writable = false,
            Some(Ok(())) => {
                socket.is_securing = true;
                socket.stream.set_options(self.options.keepalive);
                self.last = Last {
                    address: socket.address,
                    has_answered: false,
                };
                self.secure(io.conversation);
            }
            Some(Err(error)) => {
                self.release(io.registry);
                self.connect_failed(&error, io);
            }
        }
    }

    /// Connecting failed: tries the next address of the name, if there is one.
    fn connect_failed<C: Conversation>(&mut self, error: &io::Error, io: &mut Io<'_, C>) {
        if matches!(&self.found, Some(addresses) if addresses.next_at().is_some()) {
            return self.connect(io);
        }
        self.found = None;
        io.conversation
            .closed(clock::now(), self.node, unreachable(error));
    }
}

/// How far a handshake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    None,
    /// The server has sent something, and there is more to come.
    Continued,
    Completed,
}

impl NodeConnection {
    /// Continues the TLS handshake of a connected socket, if there is one, and begins the greeting
    /// when it is completed.
    pub(super) fn secure(&mut self, conversation: &mut impl Conversation) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        match socket.shake_hands() {
            Ok(Progress::Completed) => {
                socket.is_securing = false;
                socket.is_connected = true;
                // What was decrypted behind the handshake causes no event.
                socket.is_readable |= socket.stream.has_decrypted();
                conversation.connected(self.node, clock::now());
                #[cfg(feature = "diagnostics")]
                conversation.leads_to(self.node, socket.stream.host());
            }
            Ok(progress) => {
                // Not without progress: each step may prolong the time limit.
                let is_new = conversation.phase(self.node) != Phase::Securing;
                if progress == Progress::Continued || is_new {
                    conversation.connecting(self.node, clock::now(), Phase::Securing);
                }
            }
            Err(error) => {
                let problem = socket.loss(Some(&error), conversation.secure_scheme());
                conversation.closed(clock::now(), self.node, problem);
            }
        }
    }
}

impl OpenSocket {
    /// Has the address accepted the connection?
    pub(super) fn has_answered(&self) -> bool {
        self.is_connected || self.is_securing
    }

    /// Continues the handshake as far as the socket allows. When it is completed, its last message
    /// is not flushed: it is sent together with the greeting.
    fn shake_hands(&mut self) -> io::Result<Progress> {
        let mut progress = Progress::None;
        while self.stream.is_handshaking() {
            let result = if self.is_writable && self.stream.has_unsent() {
                self.stream
                    .flush()
                    .map_err(|error| (error, &mut self.is_writable))
            } else if self.is_readable {
                match self.stream.receive() {
                    Ok(is_drained) => {
                        progress = Progress::Continued;
                        self.is_readable = !is_drained || self.is_finished;
                        Ok(())
                    }
                    Err(error) => Err((error, &mut self.is_readable)),
                }
            } else {
                return Ok(progress);
            };
            match result {
                Ok(()) => {}
                Err((error, is_ready)) if error.kind() == ErrorKind::WouldBlock => {
                    *is_ready = false;
                }
                Err((error, _)) if error.kind() == ErrorKind::Interrupted => {}
                Err((error, _)) => return Err(error),
            }
        }
        Ok(Progress::Completed)
    }

    /// The error for a connection that has broken with `error`, or that the server has ended.
    /// `secure_scheme`: of URLs by which the connection would be secured.
    pub(super) fn loss(&self, error: Option<&io::Error>, secure_scheme: &str) -> NodeError {
        if let Some(error) = error.and_then(tls_error) {
            return NodeError::Tls(error.clone());
        }
        let is_ended = error.is_none_or(|error| {
            matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe
            )
        });
        let text = error.map_or("closed by the server".to_owned(), ToString::to_string);
        // Redis closes the connection when what it receives is not TLS, without a word.
        let may_want_tls = is_ended && !self.has_received && self.stream.lacks_tls();
        NodeError::Disconnected(match text {
            text if self.is_securing => format!("{text}, in the TLS handshake"),
            text if may_want_tls => {
                format!("{text}; if the server expects TLS, use a {secure_scheme}:// URL")
            }
            text => text,
        })
    }
}

/// The error for a connection that could not be made.
pub(in crate::net) fn unreachable(error: &io::Error) -> NodeError {
    match tls_error(error) {
        Some(error) => NodeError::Tls(error.clone()),
        None => NodeError::Unreachable {
            kind: error.kind(),
            text: error.to_string(),
        },
    }
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}
