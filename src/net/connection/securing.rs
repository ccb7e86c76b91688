//! The TLS handshake of a connection, and why a connection is lost.

use super::{Connection, Socket};
use crate::clock;
use crate::net::conversation::Conversation;
use crate::node::{NodeError, Phase, TlsError};
use std::io::{self, ErrorKind};

/// How far a handshake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    None,
    /// The server has sent something, and there is more to come.
    Continued,
    Completed,
}

impl Connection {
    /// Continues the TLS handshake of a connected socket, if there is one, and begins the greeting
    /// when it is completed.
    pub(super) fn secure(&mut self, conversation: &mut impl Conversation) {
        let Some(socket) = &mut self.socket else { return };
        match socket.shake_hands() {
            Ok(Progress::Completed) => {
                socket.is_securing = false;
                socket.is_connected = true;
                // What was decrypted behind the handshake causes no event.
                socket.is_readable |= socket.stream.has_decrypted();
                conversation.connected(self.node, clock::now(), socket.stream.host());
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

impl Socket {
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
                self.stream.flush().map_err(|error| (error, &mut self.is_writable))
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
        None => NodeError::Unreachable { kind: error.kind(), text: error.to_string() },
    }
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}
