//! `scan.lua` in Rust: lists the keys that match a pattern and may be locks.
//!
//! Redis visits the keys in the order of its hash table. So does the model, by a hash of its own: a
//! cursor is the hash of the next key, and keys that come or go meanwhile do not move the others.

use super::command::Call;
use super::holders::in_parts;
use super::reply::OwnedReply;
use super::script_steps::{malformed, number, proof};
use super::scripts::{Outcome, Words};
use crate::node::script::SHOWN_MAX;

/// The most keys in a reply, and the most bytes of them.
const KEYS_MAX: usize = 4096;
const BYTES_MAX: usize = 200 * 1024;

/// `scan.lua`
pub(super) fn scan(call: &mut Call<'_>, words: Words<'_>) -> Outcome {
    let ([], [asked, pattern, _, _]) = (words.keys, words.argv) else { return Err(malformed()) };
    let (cursor, count, proof) = (number(words, 0)?, number(words, 2)?, proof(words)?);
    let count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(malformed)?;
    let (page, next) = page(call, cursor, count);
    let mut keys = page;
    keys.retain(|key| is_meant(pattern, key) && may_be_a_lock(call, key));
    let bytes: usize = keys.iter().map(Vec::len).sum();
    let (next, keys) = if keys.len() > KEYS_MAX || bytes > BYTES_MAX {
        (asked.to_vec(), OwnedReply::Null)
    } else {
        let keys = keys.into_iter().map(OwnedReply::Bulk).collect();
        (next.to_string().into_bytes(), in_parts(keys))
    };
    Ok(OwnedReply::Array(vec![OwnedReply::Integer(proof), OwnedReply::Bulk(next), keys]))
}

/// `SCAN cursor COUNT count`: the keys, and the next cursor. Keys with the same hash stay together.
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

/// Is it a string with a ttl, and are it and its key no longer than those of a lock, and is it not
/// a key of a queue or counter?
fn may_be_a_lock(call: &mut Call<'_>, key: &[u8]) -> bool {
    const INFIX: &[u8] = b":redlatch:";
    const KEY_MAX: usize = 64 * 1024;
    let now_ms = call.now_ms;
    let Some(entry) = call.database().find(now_ms, key) else { return false };
    let length = entry.value.as_string().map_or(0, <[u8]>::len);
    let is_other = key.len() > KEY_MAX || key.windows(INFIX.len()).any(|part| part == INFIX);
    entry.expires_at_ms.is_some() && (1..SHOWN_MAX).contains(&length) && !is_other
}

/// `MATCH pattern`. To Redis, this one pattern means that there is none.
fn is_meant(pattern: &[u8], key: &[u8]) -> bool {
    pattern == b"*" || matches(pattern, key)
}

/// Does the text match the pattern, as Redis matches them? An empty text matches only an empty
/// pattern.
fn matches(mut pattern: &[u8], mut text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    // Behind the last `*`: the pattern, and the text of which it takes one more byte each time.
    let mut last_star: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix(b"*") {
            last_star = Some((rest, text));
            pattern = rest;
            continue;
        }
        let step = text.split_first().and_then(|(byte, rest)| Some((one(pattern, *byte)?, rest)));
        match step {
            Some(rests) => (pattern, text) = rests,
            None if pattern.is_empty() && text.is_empty() => return true,
            None => match last_star {
                Some((behind, [_, rest @ ..])) => {
                    (pattern, text) = (behind, rest);
                    last_star = Some((behind, rest));
                }
                _ => return false,
            },
        }
    }
}

/// What is left of a pattern whose first element, no `*`, matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', quoted, rest @ ..] => (*quoted == byte).then_some(rest),
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
        [] => None,
    }
}

/// The same for the rest of a class such as `[^a-z]`. Without a `]`, it goes on to the end.
fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut is_member = false;
    let end = loop {
        match rest {
            [b'\\', quoted, more @ ..] => (is_member, rest) = (is_member || *quoted == byte, more),
            [b']', end @ ..] => break end,
            [from, b'-', to, more @ ..] => {
                let range = *from.min(to)..=*from.max(to);
                (is_member, rest) = (is_member || range.contains(&byte), more);
            }
            [member, more @ ..] => (is_member, rest) = (is_member || *member == byte, more),
            [] => break rest,
        }
    };
    (is_member != is_negated).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        let table: [(&str, &[&str], &[&str]); 12] = [
            ("job", &["job"], &["jobs", "jo", ""]),
            ("j*b", &["jb", "job", "jbb"], &["jobs", "b"]),
            ("*a*b", &["ab", "xaxxbxb"], &["ba", "a"]),
            ("**", &["a", "ab"], &[""]),
            ("?o?", &["job"], &["jo", "jobs"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "-x", "x"]),
            ("[c-a]x", &["bx"], &["dx"]),
            ("[^ab]", &["c", "^"], &["a", "b"]),
            (r"[\]a]", &["]", "a"], &["\\"]),
            ("[ab", &["a", "b"], &["[ab", "c"]),
            (r"\*\[", &["*["], &["a["]),
            ("a\\", &["a\\"], &["a"]),
        ];
        for (pattern, matching, others) in table {
            for text in matching {
                assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
            for text in others {
                assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
        }
    }
}
