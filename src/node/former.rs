//! Connections that were given up with commands unanswered, and how they are ended.
//!
//! What was written to a connection may reach the server long after the client has given the
//! connection up: a segment is lost and sent again, or a proxy holds it back. Every command is
//! harmless then (the table in [`command`](super::command) says why), but it may leave a key behind
//! that only its ttl removes. So the next connection to the same server ends those before it with
//! `CLIENT KILL ID`, before any lock command is written: what the server has not carried out by
//! then it never will.
//!
//! A server numbers its connections anew with each start. So a number is only of use together with
//! the run of the server that gave it, and where that is not known nothing is ended: it might be
//! somebody else's connection.

use super::identity::Identity;
use super::server_error::{ServerError, ServerErrorKind};
use crate::resp::{Reply, encode_command};

/// The most connections that are remembered for one node. Beyond that the oldest is forgotten:
/// what it still delivers is carried out.
pub const FORMER_MAX: usize = 16;

/// After so many answers in a row that are none, a server is not asked again to end connections: it
/// could never be used otherwise. A few may be strays.
const MISUNDERSTOOD_MAX: u32 = 10;

/// Connections to one node that were given up and may still deliver something.
#[derive(Clone, Debug, Default)]
pub struct FormerConnections {
    connections: Vec<Connection>,
    /// How many of them, from the first, are being ended.
    ending: usize,
    /// How often in a row what came was no answer to that.
    misunderstood: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Connection {
    run_id: String,
    id: u64,
}

impl FormerConnections {
    /// The connection to this server was given up with commands unanswered.
    pub fn add(&mut self, server: &Identity) {
        let (Some(run_id), Some(id)) = (server.run_id.clone(), server.connection) else { return };
        if self.connections.len() == FORMER_MAX {
            self.connections.remove(0);
        }
        self.connections.push(Connection { run_id, id });
    }

    /// Appends to `out` what ends those that lead to this run of the server.
    pub(super) fn end(&mut self, server: &Identity, out: &mut Vec<u8>) {
        // Within one run numbers only grow. One that is not below this connection's is somebody
        // else's: of a proxy that counts by itself, or of a server set back to a snapshot.
        let leads_here = |it: &Connection| {
            let is_before = server.connection.is_none_or(|own| it.id < own);
            Some(&it.run_id) == server.run_id.as_ref() && is_before
        };
        // In the order of the answers.
        self.connections.sort_by_key(|it| !leads_here(it));
        self.ending = self.connections.iter().filter(|it| leads_here(it)).count();
        for connection in &self.connections[..self.ending] {
            let id = connection.id.to_string();
            encode_command(out, &[b"CLIENT", b"KILL", b"ID", id.as_bytes()]);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Are answers to come about connections that are being ended?
    pub(super) fn is_ending(&self) -> bool {
        self.ending > 0
    }

    /// What came was no answer to that, and its connection is closed.
    pub(super) fn misunderstand(&mut self) {
        self.misunderstood += 1;
        if self.misunderstood >= MISUNDERSTOOD_MAX {
            *self = Self::default();
        }
    }

    /// The server has answered about the next of those. Where it has ended it, or has no way to,
    /// the next connection need not try; any other error may have come unasked.
    pub(super) fn answered(&mut self, reply: &Reply<'_>) {
        let is_done = match reply {
            Reply::Error(text) => is_refusal(ServerError::parse(text, None).kind),
            _ => true,
        };
        self.misunderstood = 0;
        self.ending -= 1;
        let connection = self.connections.remove(0);
        if !is_done {
            self.connections.push(connection);
        }
    }
}

/// Does a server that says this lack the command, or the user the right to it? Any other error may
/// have come unasked.
pub(super) fn is_refusal(kind: ServerErrorKind) -> bool {
    matches!(kind, ServerErrorKind::NoPermission | ServerErrorKind::UnknownCommand)
}
