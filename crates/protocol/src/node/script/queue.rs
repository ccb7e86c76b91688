//! A waiter enters the queue of a lock, or renews its entry.

use super::{
    CALLED_SUFFIX, FLOOR_SUFFIX, HOLDERS_SUFFIX, NodeCommand, PERMITS_SUFFIX, QUEUE, QUEUE_SUFFIX,
    Script, ScriptCall,
};
use crate::engine::{PermitSet, QueueEntry, QueueView, Share, Vote, WAITER_NUMBER_MAX};
use crate::node::command::{NodeReply, name_of_channel, requested_mode, value_of};
use crate::resp::Reply;
use crate::resp::Word::{Bytes, Number};
use std::time::Duration;

impl NodeCommand for QueueEntry {
    fn script(&self) -> Option<Script> {
        Some(QUEUE)
    }

    fn encode(&self, call: ScriptCall<'_>, out: &mut Vec<u8>) {
        let QueueEntry {
            lock,
            waiter,
            number,
            lease,
            ..
        } = self;
        let waiter = waiter.as_bytes();
        let value = value_of(lock);
        let entry = value_of_entry(self, call.tag());
        let number = Number(*number);
        let lease = Number(lease.as_millis());
        let arguments = [Bytes(waiter), number, Bytes(&value), Bytes(&entry), lease];
        let keys = [
            QUEUE_SUFFIX,
            HOLDERS_SUFFIX,
            CALLED_SUFFIX,
            PERMITS_SUFFIX,
            FLOOR_SUFFIX,
        ];
        call.run(QUEUE, lock, &keys, &arguments, out);
    }

    fn read(&self, number: i64, reply: &Reply<'_>, _: Option<&[u8]>) -> Option<NodeReply> {
        let Reply::Array(list) = reply else {
            return None;
        };
        let elements: Vec<_> = list.iter().collect();
        let (first, rest) = elements.split_first()?;
        if *first != Reply::Integer(number) {
            return None;
        }
        let (number, view) = view(rest)?;
        let permits = self.lock.share().map_or(0, Share::permits);
        if view.free.numbers().any(|number| number >= permits) {
            return None;
        }
        let keys = self.lock.keys().count();
        let is_possible = view.lacks.is_none_or(|index| keys > 1 && index < keys);
        let counter = Some(number);
        let view = Some(Box::new(view));
        is_possible.then(|| NodeReply {
            counter,
            view,
            ..NodeReply::of(Vote::Granted)
        })
    }
}

/// The entry of a waiter, as the scripts and `inspect.lua` read it: since when it waits, what for,
/// how long a claim takes, how long the entry is kept in front, the channel, and the owner's label.
fn value_of_entry(entry: &QueueEntry, tag: &[u8]) -> Vec<u8> {
    let QueueEntry {
        lock,
        since,
        lease_in_front,
        claim,
        channel,
        ..
    } = entry;
    let claim = if channel.is_some() {
        claim.notified
    } else {
        claim.asking
    };
    let claim = claim.as_millis();
    let lease = lease_in_front.as_millis();
    let head = format!("{since}{} {claim} {lease} ", requested_mode(lock));
    let owner = lock
        .attributes
        .as_ref()
        .map_or(&[][..], |attributes| &attributes.owner);
    let channel = channel.map_or_else(Vec::new, |channel| name_of_channel(channel, tag));
    [head.as_bytes(), &channel, b" ", owner].concat()
}

/// A waiter's number and what the node says about it, in the elements behind the script's number.
fn view(elements: &[Reply<'_>]) -> Option<(u64, QueueView)> {
    let [number, place, reserved, left, waiting, Reply::Bulk(free)] = elements else {
        return None;
    };
    let integer = |reply: &Reply<'_>| match reply {
        Reply::Integer(number) => Some(*number),
        _ => None,
    };
    let number = u64::try_from(integer(number)?).ok()?;
    let place = u64::try_from(integer(place)?).ok()?;
    let waiting = u64::try_from(integer(waiting)?).ok()?;
    let flags = usize::try_from(integer(reserved)?).ok()?;
    let [is_reserved, was_out] = [1, 2].map(|flag| flags & flag == flag);
    let lacks = (flags / 4).checked_sub(1);
    if is_reserved && lacks.is_some() {
        return None;
    }
    let is_valid = (1..=WAITER_NUMBER_MAX).contains(&number) && place < waiting;
    // Negative: there is no key, or it has no ttl.
    let left = u64::try_from(integer(left)?)
        .ok()
        .map(Duration::from_millis);
    let free = PermitSet::read(free)?;
    let view = QueueView {
        place,
        is_reserved,
        lacks,
        was_out,
        left,
        is_heard: false,
        free,
    };
    is_valid.then_some((number, view))
}
