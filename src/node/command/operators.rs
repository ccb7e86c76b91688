//! Requests of operators: to look at a lock, to remove it by force, and to list keys.

use super::decimal;
use super::meaning::{Meaning, list};
use super::several::Call;
use crate::node::report::{HolderSnapshot, KeyPage, KeySnapshot, WaiterSnapshot};
use crate::resp::{Elements, Reply, encode_command};

impl Call<'_> {
    /// Reads a lock's key.
    pub(super) fn inspect(self, key: &[u8], out: &mut Vec<u8>) {
        let (verb, name) = self.name;
        encode_command(out, &[verb, name, b"1", key, self.proof]);
    }

    /// Removes a lock's key if it holds one of the values that were seen.
    pub(super) fn remove(self, key: &[u8], seen: &[Vec<u8>], out: &mut Vec<u8>) {
        let (verb, name) = self.name;
        let mut words: Vec<&[u8]> = vec![verb, name, b"1", key];
        words.extend(seen.iter().map(Vec::as_slice));
        words.push(self.proof);
        encode_command(out, &words);
    }

    /// Lists the next keys that match a pattern.
    pub(super) fn scan(self, pattern: &[u8], cursor: u64, count: u32, out: &mut Vec<u8>) {
        let (verb, name) = self.name;
        let [mut cursor_digits, mut count_digits] = [[0; 20]; 2];
        let cursor = decimal(cursor, &mut cursor_digits);
        let count = decimal(count.into(), &mut count_digits);
        encode_command(out, &[verb, name, b"0", cursor, pattern, count, self.proof]);
    }
}

/// The meaning of the answer to an inspection.
pub(super) fn seen(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    let Reply::Array(list) = reply else { return None };
    let elements: Vec<_> = list.iter().collect();
    let [first, value, Reply::Integer(left), waiters, holders, waiter_count, holder_count] =
        &elements[..]
    else {
        return None;
    };
    let (Reply::Array(waiters), Reply::Array(holders)) = (waiters, holders) else { return None };
    let (Reply::Integer(waiter_count), Reply::Integer(holder_count)) = (waiter_count, holder_count)
    else {
        return None;
    };
    if *first != Reply::Integer(number) {
        return None;
    }
    let (value, is_string) = match value {
        Reply::Null => (None, false),
        Reply::Bulk(bytes) => (Some(bytes.to_vec()), true),
        Reply::Integer(0) => (Some(Vec::new()), false),
        _ => return None,
    };
    Some(Meaning::Seen(KeySnapshot {
        value,
        is_string,
        left: *left,
        waiters: snapshots(waiters)?,
        waiter_count: usize::try_from(*waiter_count).ok()?,
        holders: holders_of(holders)?,
        holder_count: usize::try_from(*holder_count).ok()?,
        quarantine: None,
    }))
}

/// The meaning of the answer to a scan.
pub(super) fn listed(number: i64, reply: &Reply<'_>) -> Option<Meaning> {
    let [Some(Reply::Bulk(next)), keys, None] = list(number, reply)? else { return None };
    let is_number = next.iter().all(u8::is_ascii_digit);
    let next = std::str::from_utf8(next).ok().filter(|_| is_number)?.parse().ok()?;
    let keys = match keys? {
        Reply::Null => None,
        Reply::Array(parts) => Some(keys_of(&parts)?),
        _ => return None,
    };
    Some(Meaning::Listed(KeyPage { next, keys }))
}

fn keys_of(parts: &Elements<'_>) -> Option<Vec<Vec<u8>>> {
    let key = |element| match element {
        Reply::Bulk(key) => Some(key.to_vec()),
        _ => None,
    };
    elements_of_parts(parts)?.into_iter().map(key).collect()
}

/// The elements of a list that comes in parts, none of which is longer than a list may be.
fn elements_of_parts<'a>(parts: &Elements<'a>) -> Option<Vec<Reply<'a>>> {
    let mut elements = Vec::new();
    for part in parts.iter() {
        let Reply::Array(part) = part else { return None };
        elements.extend(part.iter());
    }
    Some(elements)
}

/// The holders of a shared lock: members and their ttl, alternating.
fn holders_of(list: &Elements<'_>) -> Option<Vec<HolderSnapshot>> {
    let mut holders = Vec::new();
    let elements = elements_of_parts(list)?;
    let mut elements = elements.into_iter();
    while let Some(member) = elements.next() {
        let (Reply::Bulk(member), Reply::Integer(left)) = (member, elements.next()?) else {
            return None;
        };
        holders.push(HolderSnapshot { member: member.to_vec(), left });
    }
    Some(holders)
}

/// The waiters in a queue: names and the values of their leases, alternating.
fn snapshots(list: &Elements<'_>) -> Option<Vec<WaiterSnapshot>> {
    let mut waiters = Vec::new();
    let elements = elements_of_parts(list)?;
    let mut elements = elements.into_iter();
    while let Some(name) = elements.next() {
        let (Reply::Bulk(name), Reply::Bulk(lease)) = (name, elements.next()?) else {
            return None;
        };
        // A member that is no waiter's name was put there by another program.
        waiters.extend(WaiterSnapshot::read(name, lease));
    }
    Some(waiters)
}
