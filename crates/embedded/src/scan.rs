//! The command `SCAN`: lists keys that match a pattern.
//!
//! Redis visits the keys in the order of its hash table. So does the model, by a hash of its own: a
//! cursor is the hash of the next key, and keys that come or go meanwhile do not move the others.

use super::command::{Call, integer};
use super::reply::{Answer, Failure, OwnedReply};
use redlatch_protocol::glob;

/// `SCAN cursor [MATCH pattern] [COUNT count]`
pub(super) fn scan(call: &mut Call<'_>) -> Answer {
    let cursor = std::str::from_utf8(call.args[1]).ok().and_then(|text| text.parse().ok());
    let cursor = cursor.ok_or_else(|| Failure::new("ERR invalid cursor"))?;
    let (mut pattern, mut count): (&[u8], usize) = (b"*", 10);
    for option in call.args[2..].chunks(2) {
        match *option {
            [name, wanted] if name.eq_ignore_ascii_case(b"MATCH") => pattern = wanted,
            [name, wanted] if name.eq_ignore_ascii_case(b"COUNT") => {
                let wanted = usize::try_from(integer(wanted)?).unwrap_or(0);
                count = Some(wanted).filter(|count| *count > 0).ok_or_else(Failure::syntax)?;
            }
            [name, _] if name.eq_ignore_ascii_case(b"TYPE") => {
                let text = "ERR embedded nodes know only MATCH and COUNT of SCAN";
                return Err(Failure::new(text));
            }
            _ => return Err(Failure::syntax()),
        }
    }
    let (mut keys, next) = page(call, cursor, count);
    let now_ms = call.now_ms;
    keys.retain(|key| glob::is_listed(pattern, key) && call.database().find(now_ms, key).is_some());
    let keys = keys.into_iter().map(OwnedReply::Bulk).collect();
    Ok(OwnedReply::Array(vec![OwnedReply::bulk(next.to_string()), OwnedReply::Array(keys)]))
}

/// About `count` keys, and the next cursor. Keys with the same hash stay together.
fn page(call: &mut Call<'_>, cursor: u64, count: usize) -> (Vec<Vec<u8>>, u64) {
    let keys = call.database().entries.keys().map(|key| (hash(key), key));
    let mut keys: Vec<_> = keys.filter(|(hash, _)| *hash >= cursor).collect();
    keys.sort_unstable();
    let last = keys.get(count - 1).map_or(u64::MAX, |(hash, _)| *hash);
    let end = keys.partition_point(|(hash, _)| *hash <= last);
    let next = keys.get(end).map_or(0, |(hash, _)| *hash);
    (keys[..end].iter().map(|(_, key)| key.to_vec()).collect(), next)
}

/// FNV-1a, whose values for similar keys are far apart.
fn hash(key: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    key.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
