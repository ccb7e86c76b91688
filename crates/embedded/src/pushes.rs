//! Messages that are not replies: about keys that change, and from publishers.
//!
//! `CLIENT TRACKING`: a connection is told once when a key changes that it has read. As in Redis,
//! the keys that a connection has read are remembered by name, whatever the database, until one of
//! them is written, deleted or expires. `OFF` forgets no keys: they count again after the next
//! `ON`. A connection with RESP2 is told nothing.
//!
//! `SUBSCRIBE`, `UNSUBSCRIBE` and `PUBLISH`: messages by the names of channels, without patterns.
//! What a connection gets is a push message of RESP3. Intended differences from Redis: a connection
//! with RESP2 gets arrays, as there, but may go on to run any command; and a message to the
//! connection that publishes it comes after the reply, as in Redis from 7.2.

use super::command::Call;
use super::reply::{CommandError, CommandResult, OwnedReply, Protocol, count, refuse};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The connections that are to be told something about a name, such as a key or a path.
#[derive(Debug, Default)]
pub(crate) struct Listeners<C>(BTreeMap<Vec<u8>, BTreeSet<C>>);

impl<C: Copy + Ord> Listeners<C> {
    pub(crate) fn add(&mut self, name: &[u8], connection: C) {
        self.0.entry(name.to_vec()).or_default().insert(connection);
    }

    /// Those of this name, which are forgotten.
    pub(crate) fn take(&mut self, name: &[u8]) -> BTreeSet<C> {
        self.0.remove(name).unwrap_or_default()
    }

    /// The connection is told no more about the names that `is_meant` says.
    fn remove(&mut self, connection: C, is_meant: impl Fn(&[u8]) -> bool) {
        self.0.retain(|name, connections| {
            if is_meant(name) {
                connections.remove(&connection);
            }
            !connections.is_empty()
        });
    }

    /// The connection was closed, or is told nothing more.
    pub(crate) fn forget(&mut self, connection: C) {
        self.remove(connection, |_| true);
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.keys().map(Vec::as_slice)
    }

    fn of(&self, connection: C) -> impl Iterator<Item = &Vec<u8>> {
        let of_it = self
            .0
            .iter()
            .filter(move |(_, those)| those.contains(&connection));
        of_it.map(|(name, _)| name)
    }
}

/// Which reads of a connection are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackingMode {
    All,
    /// Those of a command that `CLIENT CACHING YES` precedes.
    OptIn,
}

/// Who is to be told what.
#[derive(Debug, Default)]
pub(super) struct Pushes {
    pub(super) tracking: BTreeMap<i64, Protocol>,
    /// The connections that have read a key.
    pub(super) readers: Listeners<i64>,
    /// The connections that have subscribed to a channel.
    pub(super) channels: Listeners<i64>,
    /// The messages that were not sent yet, and the ids of the connections that they are for.
    pub(super) queue: VecDeque<(i64, OwnedReply)>,
}

impl Pushes {
    /// The connection was closed.
    pub(super) fn forget(&mut self, id: i64) {
        self.tracking.remove(&id);
        self.readers.forget(id);
        self.channels.forget(id);
        self.queue.retain(|(other, _)| *other != id);
    }

    /// A key has changed: tells all that have read it.
    pub(super) fn invalidate(&mut self, key: &[u8]) {
        for id in self.readers.take(key) {
            self.tell(id, OwnedReply::Array(vec![OwnedReply::bulk(key)]));
        }
    }

    /// All keys of a database are gone: tells all that track keys, and forgets which.
    pub(super) fn flush(&mut self) {
        self.readers = Listeners::default();
        let ids: Vec<i64> = self.tracking.keys().copied().collect();
        ids.into_iter()
            .for_each(|id| self.tell(id, OwnedReply::Null));
    }

    fn tell(&mut self, id: i64, keys: OwnedReply) {
        if self.tracking.get(&id) == Some(&Protocol::Resp3) {
            let message = OwnedReply::Push(vec![OwnedReply::bulk("invalidate"), keys]);
            self.queue.push_back((id, message));
        }
    }
}

/// `CLIENT TRACKING ON [OPTIN]` and `CLIENT TRACKING OFF`
pub(super) fn client_tracking(call: &mut Call<'_>) -> CommandResult {
    let mut mode = TrackingMode::All;
    for option in &call.args[3..] {
        match option.to_ascii_uppercase().as_slice() {
            b"OPTIN" => mode = TrackingMode::OptIn,
            b"OPTOUT" | b"BCAST" | b"NOLOOP" | b"REDIRECT" | b"PREFIX" => {
                return refuse("ERR embedded nodes track keys only with OPTIN or without");
            }
            _ => return Err(CommandError::syntax()),
        }
    }
    match call.args[2].to_ascii_uppercase().as_slice() {
        b"ON" => {
            call.session.tracking = Some(mode);
            call.keyspace
                .pushes
                .tracking
                .insert(call.session.id, call.session.protocol);
        }
        b"OFF" => {
            call.session.tracking = None;
            call.session.caching = false;
            call.keyspace.pushes.tracking.remove(&call.session.id);
        }
        _ => return Err(CommandError::syntax()),
    }
    Ok(OwnedReply::OK)
}

/// `CLIENT CACHING YES`; `NO` is for the mode `OPTOUT`, which embedded nodes do not have.
pub(super) fn client_caching(call: &mut Call<'_>) -> CommandResult {
    let Some(mode) = call.session.tracking else {
        return refuse(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        );
    };
    match call.args[2].to_ascii_uppercase().as_slice() {
        b"YES" if mode == TrackingMode::OptIn => {
            call.session.caching = true;
            Ok(OwnedReply::OK)
        }
        b"YES" => {
            refuse("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
        }
        b"NO" => {
            refuse("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
        }
        _ => Err(CommandError::syntax()),
    }
}

/// `SUBSCRIBE channel [channel ...]`: no reply, but a message about each channel.
pub(super) fn subscribe(call: &mut Call<'_>) -> CommandResult {
    let id = call.session.id;
    let channels = &mut call.keyspace.pushes.channels;
    let confirmed = call.args[1..].iter().map(|channel| {
        channels.add(channel, id);
        message(
            "subscribe",
            OwnedReply::bulk(*channel),
            count(channels.of(id).count()),
        )
    });
    Ok(OwnedReply::Messages(confirmed.collect()))
}

/// `UNSUBSCRIBE [channel ...]`: from all, if none is named.
pub(super) fn unsubscribe(call: &mut Call<'_>) -> CommandResult {
    let id = call.session.id;
    let channels = &mut call.keyspace.pushes.channels;
    let named: Vec<Vec<u8>> = match &call.args[1..] {
        [] => channels.of(id).cloned().collect(),
        named => named.iter().map(|channel| channel.to_vec()).collect(),
    };
    if named.is_empty() {
        let none = message("unsubscribe", OwnedReply::Null, count(0));
        return Ok(OwnedReply::Messages(vec![none]));
    }
    let confirmed = named.into_iter().map(|channel| {
        channels.remove(id, |other| other == channel);
        message(
            "unsubscribe",
            OwnedReply::Bulk(channel),
            count(channels.of(id).count()),
        )
    });
    Ok(OwnedReply::Messages(confirmed.collect()))
}

/// `PUBLISH channel message`: how many connections get it.
pub(super) fn publish(call: &mut Call<'_>) -> CommandResult {
    let channel = call.args[1];
    let payload = call.args[2];
    // What a script has changed before is told before.
    call.keyspace.settle();
    let ids = call
        .keyspace
        .pushes
        .channels
        .0
        .get(channel)
        .cloned()
        .unwrap_or_default();
    for id in &ids {
        let sent = message(
            "message",
            OwnedReply::bulk(channel),
            OwnedReply::bulk(payload),
        );
        call.keyspace.pushes.queue.push_back((*id, sent));
    }
    Ok(count(ids.len()))
}

fn message(kind: &str, channel: OwnedReply, content: OwnedReply) -> OwnedReply {
    OwnedReply::Push(vec![OwnedReply::bulk(kind), channel, content])
}

#[cfg(test)]
mod tests {
    use crate::keyspace::Keyspace;
    use crate::nodes::NodeOptions;
    use crate::reply::OwnedReply;
    use redlatch_protocol::time::Time;

    #[test]
    fn a_connection_that_has_ended_gets_no_message() {
        let mut node = Keyspace::new(NodeOptions::default());
        let mut publisher = node.connect();
        let mut subscribers = [(); 3].map(|()| node.connect());
        for session in &mut subscribers {
            node.execute(Time::ZERO, session, &[b"HELLO", b"3"]);
            node.execute(Time::ZERO, session, &[b"SUBSCRIBE", b"news"]);
        }
        let mut publish = |node: &mut Keyspace| {
            node.execute(Time::ZERO, &mut publisher, &[b"PUBLISH", b"news", b"x"])
        };
        assert_eq!(publish(&mut node), OwnedReply::Integer(3));
        node.disconnect(&subscribers[0]);
        let ids: Vec<i64> = std::iter::from_fn(|| node.poll_push())
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, [subscribers[1].id, subscribers[2].id]);
        assert!(node.kill(subscribers[1].id));
        assert_eq!(publish(&mut node), OwnedReply::Integer(1));
        node.restart(Time::ZERO, true, "b");
        assert_eq!(publish(&mut node), OwnedReply::Integer(0));
        assert!(node.poll_push().is_none());
    }
}
