//! A server of a replicated group: what it writes for its replicas, and what they have
//! acknowledged. `simulation/groups.rs` says who is the master, and brings the writes to replicas.

use super::lock::is_script;
use super::{Health, Node};
use crate::clock::MILLIS;
use crate::context::Context;
use crate::mistake::Mistake;
use crate::queue::Event;
use redlatch_embedded::model::{OwnedReply, Replication, Snapshot};
use redlatch_protocol::node::script;
use redlatch_protocol::time::Time;
use std::collections::BTreeMap;

/// How far a server had written, and what its keys were then.
pub(crate) type Written = (u64, Snapshot);

#[derive(Debug, Default)]
pub(super) struct Replicated {
    /// What no replica was sent.
    unsent: Vec<Written>,
    /// How far each replica has acknowledged what this master wrote.
    acknowledged: BTreeMap<usize, u64>,
}

pub(super) fn read_only() -> OwnedReply {
    OwnedReply::Error(b"READONLY You can't write against a read only replica.".to_vec())
}

impl Node {
    /// Begins as a server of a group, or again after a restart.
    pub(crate) fn replicate(&mut self, is_replica: bool) {
        self.replicated = Some(Replicated::default());
        let id = Some(self.run_id.clone());
        self.keyspace.replication = Replication {
            is_replica,
            id,
            ..Replication::default()
        };
    }

    /// Becomes the master, in a reign of this name, behind that one.
    pub(crate) fn promote(&mut self, id: String, former: String) {
        self.replicated = Some(Replicated::default());
        let offset = self.keyspace.replication.offset;
        self.keyspace.replication = Replication {
            id: Some(id),
            former: Some(former),
            offset,
            ..Replication::default()
        };
    }

    /// Learns that it is not the master. Its connections may end with that.
    pub(crate) fn demote(&mut self, context: &mut Context, ends_connections: bool) {
        self.replicated = Some(Replicated::default());
        self.keyspace.replication.is_replica = true;
        self.keyspace.replication.replicas.clear();
        if ends_connections {
            self.end_all(context);
        }
    }

    /// All clients are told at once that their connections have ended.
    pub(crate) fn end_all(&mut self, context: &mut Context) {
        self.end_connections(context, |_| true);
    }

    pub(super) fn is_of_group(&self) -> bool {
        self.replicated.is_some()
    }

    pub(crate) fn is_replica(&self) -> bool {
        self.keyspace.replication.is_replica
    }

    /// How far it has come.
    pub(crate) fn offset(&self) -> u64 {
        self.keyspace.replication.offset
    }

    /// What its replicas are to be sent.
    pub(crate) fn take_unsent(&mut self) -> Vec<Written> {
        self.replicated
            .as_mut()
            .map(|it| std::mem::take(&mut it.unsent))
            .unwrap_or_default()
    }

    /// All that it has, for a replica that begins to follow it.
    pub(crate) fn whole(&self, now: u64) -> Written {
        (
            self.keyspace.replication.offset,
            self.keyspace.snapshot(self.clock.read(now)),
        )
    }

    /// A write of its master arrives.
    pub(crate) fn apply(&mut self, (offset, snapshot): &Written) {
        self.keyspace.load(snapshot);
        self.keyspace.replication.offset = *offset;
    }

    /// A replica has acknowledged what was written up to this offset.
    pub(crate) fn acknowledged(&mut self, context: &mut Context, replica: usize, offset: u64) {
        let Some(replicated) = &mut self.replicated else {
            return;
        };
        replicated.acknowledged.insert(replica, offset);
        self.list_replicas();
        let blocked = self
            .served
            .iter()
            .filter(|(_, served)| served.blocked.is_some());
        let blocked: Vec<usize> = blocked.map(|(connection, _)| *connection).collect();
        blocked
            .into_iter()
            .for_each(|connection| self.serve(context, connection));
    }

    /// A replica follows another server from now on.
    pub(crate) fn abandoned_by(&mut self, replica: usize) {
        if let Some(replicated) = &mut self.replicated {
            replicated.acknowledged.remove(&replica);
            self.list_replicas();
        }
    }

    fn list_replicas(&mut self) {
        let replicas = self
            .replicated
            .iter()
            .flat_map(|it| it.acknowledged.values().copied());
        self.keyspace.replication.replicas = replicas.collect();
    }

    /// The keys before a command, if it matters what that writes.
    pub(super) fn before(&self, now: Time) -> Option<Snapshot> {
        self.replicated
            .as_ref()
            .map(|_| self.keyspace.snapshot(now))
    }

    /// A command was run. A replica takes back what it has written, and refuses it.
    pub(super) fn write(
        &mut self,
        now: Time,
        before: Option<Snapshot>,
        words: &[&[u8]],
        reply: OwnedReply,
    ) -> OwnedReply {
        let (Some(before), Some(replicated)) = (before, &mut self.replicated) else {
            return reply;
        };
        let after = self.keyspace.snapshot(now);
        if after == before && !is_touch(words, &reply) {
            return reply;
        }
        if self.keyspace.replication.is_replica {
            self.keyspace.load(&before);
            return read_only();
        }
        self.keyspace.replication.offset += 1;
        replicated
            .unsent
            .push((self.keyspace.replication.offset, after));
        reply
    }

    /// Must this command still wait for replicas?
    pub(super) fn blocks(
        &mut self,
        context: &mut Context,
        connection: usize,
        words: &[&[u8]],
    ) -> bool {
        let [b"WAIT", wanted, millis] = words else {
            return false;
        };
        let number = |word: &[u8]| {
            std::str::from_utf8(word)
                .ok()
                .and_then(|it| it.parse().ok())
        };
        let wanted = number(wanted).unwrap_or(0);
        let millis = number(millis).unwrap_or(0);
        let now = context.queue.now();
        let offset = self.keyspace.replication.offset;
        let Some(served) = self.served.get_mut(&connection) else {
            return false;
        };
        let (offset, until) = *served.blocked.get_or_insert_with(|| {
            let until = now + millis * MILLIS;
            context.queue.at(until, Event::Unblock { connection });
            (offset, until)
        });
        now < until && self.acknowledgements(offset) < wanted
    }

    /// The answer to `WAIT`.
    pub(super) fn count_replicas(&mut self, connection: usize) -> OwnedReply {
        let served = self.served.get_mut(&connection);
        let blocked = served.and_then(|served| served.blocked.take());
        let offset = blocked.map_or(self.keyspace.replication.offset, |(offset, _)| offset);
        OwnedReply::Integer(self.acknowledgements(offset) as i64)
    }

    fn acknowledgements(&self, offset: u64) -> u64 {
        let replicas = self.keyspace.replication.replicas.iter();
        replicas
            .filter(|acknowledged| **acknowledged >= offset)
            .count() as u64
    }

    /// With a mistake, a server says of all votes that they were given in the reign of the
    /// greeting.
    pub(super) fn reign_as_greeted(
        &mut self,
        context: &Context,
        connection: usize,
        words: &[&[u8]],
        mut reply: OwnedReply,
    ) -> OwnedReply {
        let Some(served) = self.served.get_mut(&connection) else {
            return reply;
        };
        match &mut reply {
            _ if !context.options.has(Mistake::ReignUnchecked) => {}
            OwnedReply::Array(said) if is_script(words, script::REIGN) && said.len() > 2 => {
                served.greeted = Some([said[1].clone(), said[2].clone()]);
            }
            OwnedReply::Array(said) if is_script(words, script::CHECK) && said.len() > 3 => {
                if let Some([marker, id]) = &served.greeted {
                    let master = OwnedReply::Bulk(b"master".to_vec());
                    said.splice(1..4, [marker.clone(), master, id.clone()]);
                }
            }
            _ => {}
        }
        reply
    }

    /// Does its process run?
    pub(crate) fn is_up(&self) -> bool {
        self.health == Health::Up
    }
}

/// Has this written the marker that there was?
fn is_touch(words: &[&[u8]], reply: &OwnedReply) -> bool {
    is_marked(words, b"touch", reply)
}

/// Does the group say from this on that its reign is proven?
pub(super) fn is_proof(words: &[&[u8]], reply: &OwnedReply) -> bool {
    is_marked(words, b"prove", reply)
}

/// Was a marker told after this step of the script?
fn is_marked(words: &[&[u8]], wanted: &[u8], reply: &OwnedReply) -> bool {
    let is_step = matches!(words, [.., step, _, _, _, _] if *step == wanted);
    let OwnedReply::Array(said) = reply else {
        return false;
    };
    let has_marker = matches!(said.get(1), Some(OwnedReply::Bulk(_)));
    is_step && has_marker && is_script(words, script::REIGN_ACKNOWLEDGED)
}
