//! `CLIENT TRACKING`: a connection is told once when a key changes that it has read.
//!
//! As in Redis, the keys that a connection has read are remembered by name, whatever the database,
//! until one of them is written, deleted or expires. `OFF` forgets no keys: they count again after
//! the next `ON`. A connection with RESP2 is told nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::command::Call;
use super::reply::{Answer, Failure, OwnedReply, Protocol};

/// Which reads of a connection are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackingMode {
    All,
    /// Those of a command that `CLIENT CACHING YES` precedes.
    OptIn,
}

/// The messages of a node that were not sent yet.
type Pushes = VecDeque<(i64, OwnedReply)>;

/// Which connection has read which keys.
#[derive(Debug, Default)]
pub(super) struct Tracking {
    /// The connections that track keys.
    connections: BTreeMap<i64, Protocol>,
    /// The ids of the connections that have read a key.
    readers: BTreeMap<Vec<u8>, BTreeSet<i64>>,
}

impl Tracking {
    fn start(&mut self, id: i64, protocol: Protocol) {
        self.connections.insert(id, protocol);
    }

    pub(super) fn stop(&mut self, id: i64) {
        self.connections.remove(&id);
    }

    /// The connection has another protocol now.
    pub(super) fn speak(&mut self, id: i64, protocol: Protocol) {
        if let Some(before) = self.connections.get_mut(&id) {
            *before = protocol;
        }
    }

    /// The connection was closed.
    pub(super) fn forget(&mut self, id: i64) {
        self.stop(id);
        self.readers.retain(|_, readers| {
            readers.remove(&id);
            !readers.is_empty()
        });
    }

    pub(super) fn remember(&mut self, id: i64, keys: impl IntoIterator<Item: AsRef<[u8]>>) {
        for key in keys {
            self.readers.entry(key.as_ref().to_vec()).or_default().insert(id);
        }
    }

    pub(super) fn has_keys(&self) -> bool {
        !self.readers.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.readers.keys().map(Vec::as_slice)
    }

    /// A key has changed: tells all that have read it.
    pub(super) fn invalidate(&mut self, key: &[u8], pushes: &mut Pushes) {
        for id in self.readers.remove(key).unwrap_or_default() {
            pushes.extend(self.message(id, OwnedReply::Array(vec![OwnedReply::bulk(key)])));
        }
    }

    /// All keys of a database are gone: tells all that track keys, and forgets which.
    pub(super) fn flush(&mut self, pushes: &mut Pushes) {
        self.readers.clear();
        pushes.extend(self.connections.keys().filter_map(|id| self.message(*id, OwnedReply::Null)));
    }

    fn message(&self, id: i64, keys: OwnedReply) -> Option<(i64, OwnedReply)> {
        let is_told = self.connections.get(&id) == Some(&Protocol::Resp3);
        is_told.then(|| (id, OwnedReply::Push(vec![OwnedReply::bulk("invalidate"), keys])))
    }
}

/// `CLIENT TRACKING ON [OPTIN]` and `CLIENT TRACKING OFF`
pub(super) fn client_tracking(call: &mut Call<'_>) -> Answer {
    let mut mode = TrackingMode::All;
    for option in &call.args[3..] {
        match option.to_ascii_uppercase().as_slice() {
            b"OPTIN" => mode = TrackingMode::OptIn,
            b"OPTOUT" | b"BCAST" | b"NOLOOP" | b"REDIRECT" | b"PREFIX" => {
                return Err(Failure::new(
                    "ERR embedded nodes track keys only with OPTIN or without",
                ));
            }
            _ => return Err(Failure::syntax()),
        }
    }
    match call.args[2].to_ascii_uppercase().as_slice() {
        b"ON" => {
            call.session.tracking = Some(mode);
            call.keyspace.tracking.start(call.session.id, call.session.protocol);
        }
        b"OFF" => {
            call.session.tracking = None;
            call.session.caching = false;
            call.keyspace.tracking.stop(call.session.id);
        }
        _ => return Err(Failure::syntax()),
    }
    Ok(OwnedReply::OK)
}

/// `CLIENT CACHING YES`; `NO` is for the mode `OPTOUT`, which embedded nodes do not have.
pub(super) fn client_caching(call: &mut Call<'_>) -> Answer {
    let Some(mode) = call.session.tracking else {
        return Err(Failure::new(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    match call.args[2].to_ascii_uppercase().as_slice() {
        b"YES" if mode == TrackingMode::OptIn => {
            call.session.caching = true;
            Ok(OwnedReply::OK)
        }
        b"YES" => Err(Failure::new(
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        )),
        b"NO" => Err(Failure::new(
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        )),
        _ => Err(Failure::syntax()),
    }
}
