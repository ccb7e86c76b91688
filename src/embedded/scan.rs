//! The command `SCAN`: lists keys that match a pattern.
//!
//! Redis visits the keys in the order of its hash table. So does the model, by a hash of its own: a
//! cursor is the hash of the next key, and keys that come or go meanwhile do not move the others.

use super::command::{Call, integer};
use super::reply::{Answer, Failure, OwnedReply};

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
    keys.retain(|key| is_meant(pattern, key) && call.database().find(now_ms, key).is_some());
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
