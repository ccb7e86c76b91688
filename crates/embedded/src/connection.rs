//! One connection to an embedded node: bytes in, commands, replies and push messages out.

use std::io::{self, Read, Write};

use super::inbound::Inbound;
use super::keyspace::Keyspace;
use super::reply::OwnedReply;
use super::session::ConnectionState;
use crate::clock;

/// The limit of pending replies to a client that does not read, in bytes: 1 MiB. Above it, the node
/// runs no more commands of this client; above twice as much, push messages close the connection.
const UNREAD_MAX: usize = 1024 * 1024;

/// A push message, and the id of the connection that it is for.
pub(super) type Push = (i64, OwnedReply);

pub(super) struct Connection<S> {
    stream: S,
    session: ConnectionState,
    inbound: Inbound,
    /// Encoded replies that the kernel has not taken yet.
    outbound: Vec<u8>,
    /// `inbound` may contain commands that were not run because too many replies were pending.
    interrupted: bool,
    /// The client sent bytes that are no command, and the error was sent.
    refused: bool,
}

impl<S: Read + Write> Connection<S> {
    pub(super) fn new(stream: S, session: ConnectionState) -> Self {
        let (inbound, outbound) = (Inbound::new(), Vec::new());
        Self { stream, session, inbound, outbound, interrupted: false, refused: false }
    }

    pub(super) fn session(&self) -> &ConnectionState {
        &self.session
    }

    /// Reads and runs commands and writes replies until the socket would block. Returns whether the
    /// connection stays open. Adds the messages for other connections to `pushes`.
    pub(super) fn progress(
        &mut self,
        keyspace: &mut Keyspace,
        pushes: &mut Vec<Push>,
    ) -> io::Result<bool> {
        let mut chunk = [0; 16 * 1024];
        loop {
            self.flush()?;
            if self.session.is_closing() || self.refused {
                return Ok(false);
            }
            if self.outbound.len() > UNREAD_MAX {
                // When the client reads again, a writable event calls this again.
                return Ok(true);
            }
            if std::mem::take(&mut self.interrupted) {
                self.run_commands(keyspace, pushes);
                continue;
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    self.inbound.receive(&chunk[..read]);
                    self.run_commands(keyspace, pushes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a message that is no reply. An error, also if the client reads too little, means that
    /// the connection is to be closed.
    pub(super) fn push(&mut self, message: &OwnedReply) -> io::Result<()> {
        message.encode(self.session.protocol(), &mut self.outbound);
        self.flush()?;
        if self.outbound.len() > 2 * UNREAD_MAX {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    fn run_commands(&mut self, keyspace: &mut Keyspace, pushes: &mut Vec<Push>) {
        let Self { session, inbound, outbound, interrupted, .. } = self;
        let outcome = inbound.each_command(|words| {
            let reply = keyspace.execute(clock::now(), session, words);
            reply.encode(session.protocol(), outbound);
            while let Some((id, message)) = keyspace.poll_push() {
                if id == session.id() {
                    message.encode(session.protocol(), outbound);
                } else {
                    pushes.push((id, message));
                }
            }
            *interrupted = outbound.len() > UNREAD_MAX;
            !*interrupted && !session.is_closing()
        });
        if let Err(fault) = outcome {
            let reply = OwnedReply::Error(format!("ERR Protocol error: {fault}").into_bytes());
            reply.encode(session.protocol(), outbound);
            self.refused = true;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.outbound.len() {
            match self.stream.write(&self.outbound[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.outbound.drain(..written);
        Ok(())
    }
}
