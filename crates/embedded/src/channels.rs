//! `SUBSCRIBE`, `UNSUBSCRIBE` and `PUBLISH`: messages by the names of channels, without patterns.
//!
//! What a connection gets is a push message of RESP3. Intended differences from Redis: a connection
//! with RESP2 gets arrays, as there, but may go on to run any command; and a message to the
//! connection that publishes it comes after the reply, as in Redis from 7.2.

use std::collections::{BTreeMap, BTreeSet};

use super::command::Call;
use super::reply::{Answer, OwnedReply, count};

/// The ids of the connections that have subscribed to each channel.
#[derive(Debug, Default)]
pub(super) struct Channels(BTreeMap<Vec<u8>, BTreeSet<i64>>);

impl Channels {
    fn subscribe(&mut self, id: i64, channel: &[u8]) {
        self.0.entry(channel.to_vec()).or_default().insert(id);
    }

    fn unsubscribe(&mut self, id: i64, channel: &[u8]) {
        if let Some(ids) = self.0.get_mut(channel) {
            ids.remove(&id);
            if ids.is_empty() {
                self.0.remove(channel);
            }
        }
    }

    /// The channels of a connection.
    fn of(&self, id: i64) -> impl Iterator<Item = &Vec<u8>> {
        self.0.iter().filter(move |(_, ids)| ids.contains(&id)).map(|(channel, _)| channel)
    }

    /// The connection was closed, or gets no more messages.
    pub(super) fn forget(&mut self, id: i64) {
        self.0.retain(|_, ids| {
            ids.remove(&id);
            !ids.is_empty()
        });
    }
}

/// `SUBSCRIBE channel [channel ...]`: no reply, but a message about each channel.
pub(super) fn subscribe(call: &mut Call<'_>) -> Answer {
    let id = call.session.id;
    let channels = &mut call.keyspace.channels;
    let confirmed = call.args[1..].iter().map(|channel| {
        channels.subscribe(id, channel);
        message("subscribe", OwnedReply::bulk(*channel), count(channels.of(id).count()))
    });
    Ok(OwnedReply::Messages(confirmed.collect()))
}

/// `UNSUBSCRIBE [channel ...]`: from all, if none is named.
pub(super) fn unsubscribe(call: &mut Call<'_>) -> Answer {
    let id = call.session.id;
    let channels = &mut call.keyspace.channels;
    let named: Vec<Vec<u8>> = match &call.args[1..] {
        [] => channels.of(id).cloned().collect(),
        named => named.iter().map(|channel| channel.to_vec()).collect(),
    };
    if named.is_empty() {
        let none = message("unsubscribe", OwnedReply::Null, count(0));
        return Ok(OwnedReply::Messages(vec![none]));
    }
    let confirmed = named.into_iter().map(|channel| {
        channels.unsubscribe(id, &channel);
        message("unsubscribe", OwnedReply::Bulk(channel), count(channels.of(id).count()))
    });
    Ok(OwnedReply::Messages(confirmed.collect()))
}

/// `PUBLISH channel message`: how many connections get it.
pub(super) fn publish(call: &mut Call<'_>) -> Answer {
    let (channel, payload) = (call.args[1], call.args[2]);
    // What a script has changed before is told before.
    call.keyspace.settle();
    let ids = call.keyspace.channels.0.get(channel).cloned().unwrap_or_default();
    for id in &ids {
        let sent = message("message", OwnedReply::bulk(channel), OwnedReply::bulk(payload));
        call.keyspace.pushes.push_back((*id, sent));
    }
    Ok(count(ids.len()))
}

fn message(kind: &str, channel: OwnedReply, content: OwnedReply) -> OwnedReply {
    OwnedReply::Push(vec![OwnedReply::bulk(kind), channel, content])
}

#[cfg(test)]
mod tests {
    use crate::keyspace::Keyspace;
    use crate::nodes::Options;
    use crate::reply::OwnedReply;
    use redlatch_protocol::time::Time;

    #[test]
    fn a_connection_that_has_ended_gets_no_message() {
        let mut node = Keyspace::new(Options::new());
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
        let ids: Vec<i64> = std::iter::from_fn(|| node.poll_push()).map(|(id, _)| id).collect();
        assert_eq!(ids, [subscribers[1].id(), subscribers[2].id()]);
        assert!(node.kill(subscribers[1].id()));
        assert_eq!(publish(&mut node), OwnedReply::Integer(1));
        node.restart(Time::ZERO, true, "b");
        assert_eq!(publish(&mut node), OwnedReply::Integer(0));
        assert!(node.poll_push().is_none());
    }
}
