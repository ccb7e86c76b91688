//! The TLS handshake of a connection, and why a connection is lost.

use super::{Connection, Socket};
use crate::clock;
use crate::node::{NodeError, Phase, Rounds, TlsError};
use std::io::{self, ErrorKind};

impl Connection {
    /// Continues the TLS handshake of a connected socket, if there is one, and begins the greeting
    /// when it is completed.
    pub(super) fn secure<W>(&mut self, rounds: &mut Rounds<W>) {
        let Some(socket) = &mut self.socket else { return };
        match socket.shake_hands() {
            Ok(true) => {
                socket.is_securing = false;
                socket.is_connected = true;
                // What was decrypted behind the handshake causes no event.
                socket.is_readable |= socket.stream.has_decrypted();
                rounds.session(self.node).connected(clock::now());
            }
            Ok(false) => rounds.session(self.node).connecting(clock::now(), Phase::Securing),
            Err(error) => {
                let problem = socket.loss(Some(&error));
                rounds.closed(clock::now(), self.node, problem);
            }
        }
    }
}

impl Socket {
    /// Continues the handshake as far as the socket allows. Returns whether it is completed. Its
    /// last message is not flushed then: it is sent together with the greeting.
    fn shake_hands(&mut self) -> io::Result<bool> {
        while self.stream.is_handshaking() {
            let result = if self.is_writable && self.stream.has_unsent() {
                self.stream.flush().map_err(|error| (error, &mut self.is_writable))
            } else if self.is_readable {
                let received = self.stream.receive();
                received
                    .map(|is_drained| self.is_readable = !is_drained || self.is_finished)
                    .map_err(|error| (error, &mut self.is_readable))
            } else {
                return Ok(false);
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
        Ok(true)
    }

    /// The error for a connection that has broken with `error`, or that the server has ended.
    pub(super) fn loss(&self, error: Option<&io::Error>) -> NodeError {
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
                format!("{text}; if the server expects TLS, use a rediss:// URL")
            }
            text => text,
        })
    }
}

/// The error for a connection that could not be made.
pub(super) fn unreachable(error: &io::Error) -> NodeError {
    match tls_error(error) {
        Some(error) => NodeError::Tls(error.clone()),
        None => NodeError::Unreachable { kind: error.kind(), text: error.to_string() },
    }
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}
