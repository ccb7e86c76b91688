//! The connections of a node: their clients, and which client can end them.

use super::{Node, Trouble};
use crate::checker::Command;
use crate::context::Context;
use crate::mistake::Mistake;
use crate::network::Side;
use redlatch_embedded::model::{ConnectionState, OwnedReply, Protocol};

/// A node's state of one connection.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) state: ConnectionState,
    pub(super) client: (usize, u64),
    pub(super) bytes: Vec<u8>,
    /// The id by which a client can end it, from the reply to `HELLO`.
    id: Option<i64>,
    /// Has the client got the run id of the server on it?
    is_introduced: bool,
    /// Did the server refuse to end it?
    is_spared: bool,
    /// A command waits until replicas have acknowledged this offset, or until then.
    pub(super) blocked: Option<(u64, u64)>,
    /// The marker and the reign that it was greeted with.
    pub(super) greeted: Option<[OwnedReply; 2]>,
}

impl Served {
    fn new(state: ConnectionState, client: (usize, u64)) -> Self {
        let id = None;
        let bytes = Vec::new();
        let blocked = None;
        let greeted = None;
        let is_introduced = false;
        let is_spared = false;
        Self {
            state,
            client,
            bytes,
            id,
            is_introduced,
            is_spared,
            blocked,
            greeted,
        }
    }
}

impl Node {
    /// A connection was made.
    pub(crate) fn accept(
        &mut self,
        context: &mut Context,
        connection: usize,
        client: (usize, u64),
    ) {
        if let Some(trouble) = self.trouble(context).filter(Trouble::refuses_connections) {
            let text = format!("-{}\r\n", trouble.text);
            let Context {
                network,
                queue,
                random,
                ..
            } = context;
            network.send(queue, random, connection, Side::Client, text.as_bytes());
            return network.finish(queue, random, connection, Side::Client);
        }
        let state = self.keyspace.connect();
        self.served.insert(connection, Served::new(state, client));
    }

    /// The bytes of an incomplete command that have arrived on a connection.
    pub(crate) fn begun(&self, connection: usize) -> &[u8] {
        self.served
            .get(&connection)
            .map_or(&[], |served| &served.bytes)
    }

    /// Has the node sent the id of this connection?
    pub(crate) fn is_numbered(&self, connection: usize) -> bool {
        self.served
            .get(&connection)
            .is_some_and(|served| served.id.is_some())
    }

    /// Does it speak RESP3 on this connection?
    pub(crate) fn may_push(&self, connection: usize) -> bool {
        let served = self.served.get(&connection);
        served.is_some_and(|served| served.state.protocol == Protocol::Resp3)
    }

    /// Records what the client has learned, and what it requests.
    pub(super) fn note(
        &mut self,
        context: &Context,
        connection: usize,
        words: &[&[u8]],
        reply: &OwnedReply,
    ) {
        let Some(served) = self.served.get_mut(&connection) else {
            return;
        };
        match (words[0], reply) {
            (b"HELLO", OwnedReply::Map(pairs)) => {
                let id = pairs
                    .iter()
                    .find(|(name, _)| *name == OwnedReply::Bulk(b"id".to_vec()));
                served.id = id.and_then(|(_, id)| match id {
                    OwnedReply::Integer(id) => Some(*id),
                    _ => None,
                });
            }
            (b"INFO", OwnedReply::Error(_)) => {}
            (b"INFO", _) if words[1] == b"server" => served.is_introduced = true,
            _ if Command::of(words).is_some() && served.is_introduced => {
                let end = (served.client, context.network.connections[connection].node);
                let latest = self.latest.entry(end).or_default();
                *latest = connection.max(*latest);
            }
            _ => {}
        }
    }

    /// `CLIENT KILL ID id`, if the client may. With a `refusal`, it may not.
    pub(super) fn kill(
        &mut self,
        context: &mut Context,
        id: &[u8],
        refusal: Option<&str>,
    ) -> OwnedReply {
        let id = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        let found = self
            .served
            .iter_mut()
            .find(|(_, served)| id.is_some() && served.id == id);
        let Some((connection, served)) = found else {
            return refusal.map_or(OwnedReply::Integer(0), error);
        };
        if let Some(refusal) = refusal {
            served.is_spared = true;
            return error(refusal);
        }
        let connection = *connection;
        context.trace(|| format!("node {}: connection {id:?} is ended", self.index));
        context.tally.fault("connection killed");
        if !context.options.has(Mistake::KillIgnored) {
            if let Some(served) = self.served.remove(&connection) {
                self.keyspace.disconnect(&served.state);
            }
            let Context {
                network,
                queue,
                random,
                ..
            } = context;
            network.end(queue, random, connection);
        }
        OwnedReply::Integer(1)
    }

    /// Could its client have ended this connection before? The client has abandoned it, and the
    /// same run of the server has run a lock command on a later connection of the client to the
    /// same node; before that, it would have ended this connection on request.
    pub(super) fn is_avoidable(&self, context: &Context, connection: usize) -> bool {
        let entry = &context.network.connections[connection];
        self.served.get(&connection).is_some_and(|served| {
            let is_named = served.id.is_some() && served.is_introduced && !served.is_spared;
            let latest = self.latest.get(&(served.client, entry.node));
            let is_succeeded = latest.is_some_and(|latest| *latest > connection);
            context.options.may_kill && entry.is_abandoned && is_named && is_succeeded
        })
    }
}

fn error(text: &str) -> OwnedReply {
    OwnedReply::Error(text.as_bytes().to_vec())
}
