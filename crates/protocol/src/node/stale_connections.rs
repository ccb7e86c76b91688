//! Connections that were given up with commands unanswered, and how they are ended.
//!
//! A command may reach the server long after the client has given up its connection: a segment is
//! lost and sent again, or a proxy delays it. Every command is harmless then (the table in
//! [`command`](super::command) gives the reasons), but it may leave a key behind that only its ttl
//! removes. So the next connection to the same server ends the former ones with `CLIENT KILL ID`,
//! before any lock command is written: the server never carries out their remaining commands.
//!
//! A server starts numbering its connections again with each start. So an id is valid only together
//! with the run of the server that gave it. If the run is not known, no connection is ended: the id
//! might be another client's.

use super::handshake::Identity;
use super::server_error::ServerError;
use crate::resp::{Reply, encode_command};

/// The most connections that are remembered for one node. Beyond that the oldest is forgotten: its
/// late commands are carried out.
pub const STALE_MAX: usize = 16;

/// After this many invalid answers in a row, a server is not asked again to end connections: it
/// could never be used otherwise. A few invalid answers may be strays.
const INVALID_ANSWERS_MAX: u32 = 10;

/// Connections to one node that were given up and may still deliver commands.
#[derive(Clone, Debug, Default)]
pub struct StaleConnections {
    connections: Vec<StaleConnection>,
    /// How many of them, from the first, are being ended.
    ending: usize,
    /// How many invalid answers to `CLIENT KILL ID` arrived in a row.
    invalid_answers: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StaleConnection {
    run_id: String,
    id: u64,
}

impl StaleConnections {
    /// Adds a connection to this server, which was given up with commands unanswered.
    pub fn add(&mut self, server: &Identity) {
        let (Some(run_id), Some(id)) = (server.run_id.clone(), server.connection) else {
            return;
        };
        if self.connections.len() == STALE_MAX {
            self.connections.remove(0);
        }
        self.connections.push(StaleConnection { run_id, id });
    }

    /// Appends to `out` the commands that end the connections to this run of the server.
    pub(super) fn end(&mut self, server: &Identity, out: &mut Vec<u8>) {
        // Within one run ids only grow. An id that is not below this connection's belongs to
        // another client: a proxy counts by itself, or the server was reset to a snapshot.
        let leads_here = |it: &StaleConnection| {
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

    /// Are answers to `CLIENT KILL ID` expected?
    pub(super) fn is_ending(&self) -> bool {
        self.ending > 0
    }

    /// Records an invalid answer to `CLIENT KILL ID`, after which the connection is closed.
    pub(super) fn note_invalid_answer(&mut self) {
        self.invalid_answers += 1;
        if self.invalid_answers >= INVALID_ANSWERS_MAX {
            *self = Self::default();
        }
    }

    /// Handles the answer about the next connection. If the server has ended it, or cannot end it,
    /// the next greeting does not try again; any other error may be unsolicited.
    pub(super) fn answered(&mut self, reply: &Reply<'_>) {
        let is_done = match reply {
            Reply::Error(text) => ServerError::parse(text, None).kind.is_refusal(),
            _ => true,
        };
        self.invalid_answers = 0;
        self.ending -= 1;
        let connection = self.connections.remove(0);
        if !is_done {
            self.connections.push(connection);
        }
    }
}
