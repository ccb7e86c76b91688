//! Which replies of two sides mean the same although they differ.

use redlatch_protocol::node::script;

use support::cli::{Value, parse};

/// The allowed difference, in ms, of two times to live that were set and read one after the other.
/// The commands use times that differ by far more, so a wrong time is detected.
const TOLERANCE_MS: i64 = 5_000;

/// Are the replies equal, except for values that must differ?
pub(crate) fn equivalent(words: &[Vec<u8>], real: &[u8], other: &[u8]) -> bool {
    if real == other {
        return true;
    }
    let word = |index: usize| {
        words
            .get(index)
            .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
    };
    let name = word(0).unwrap_or_default();
    let subcommand = word(1).unwrap_or_default();
    let real = value(real);
    let other = value(other);
    match (name.as_str(), subcommand.as_str()) {
        ("pttl", _) => near(&real, &other, TOLERANCE_MS),
        ("ttl", _) => near(&real, &other, TOLERANCE_MS / 1000),
        ("eval" | "evalsha", _) => near_in_lists(&subcommand, real, other),
        ("hello", _) => without_id(real) == without_id(other),
        // The model has another time than the server.
        ("time", _) => match (&real, &other) {
            (Value::Array(real), Value::Array(other)) => real.len() == other.len(),
            _ => false,
        },
        // The text of INFO and similar commands differs; its type does not.
        ("info", _) | ("client", "list" | "info" | "id") => {
            std::mem::discriminant(&real) == std::mem::discriminant(&other)
                && !matches!(real, Value::Error(_))
        }
        _ => false,
    }
}

/// Are the replies of a script equal but for a time to live? `inspect.lua` and `queue.lua` answer
/// lists with one in them.
fn near_in_lists(word: &str, real: Value, other: Value) -> bool {
    let names =
        |script: script::Script| word == script.sha1 || word == script.source.to_ascii_lowercase();
    if names(script::SCAN) {
        return same_keys(&real, &other);
    }
    let place = match (names(script::INSPECT), names(script::QUEUE)) {
        (true, _) => 2,
        (_, true) => 4,
        _ => return false,
    };
    let (Value::Array(mut real), Value::Array(mut other)) = (real, other) else {
        return false;
    };
    if real.len() != other.len() || real.len() <= place {
        return false;
    }
    let left = real.remove(place);
    let others_left = other.remove(place);
    if place == 2 {
        // Behind the number and the value, the waiters and then the shares.
        let shares = [&mut real, &mut other].map(|list| (list.len() > 3).then(|| list.remove(3)));
        let [Some(Value::Array(shares)), Some(Value::Array(others))] = shares else {
            return false;
        };
        let mut parts = shares.iter().zip(&others);
        let near_parts = |(real, other): (&Value, &Value)| match (real, other) {
            (Value::Array(real), Value::Array(other)) => near_shares(real, other),
            _ => false,
        };
        if shares.len() != others.len() || !parts.all(near_parts) {
            return false;
        }
    }
    real == other && (left == others_left || near(&left, &others_left, TOLERANCE_MS))
}

/// Are the answers of `scan.lua` equal but for the order of the keys? The model hashes them in
/// another way.
fn same_keys(real: &Value, other: &Value) -> bool {
    let sorted = |value: &Value| {
        let Value::Array(list) = value else {
            return None;
        };
        let [number, cursor, Value::Array(parts)] = &list[..] else {
            return None;
        };
        let mut keys = Vec::new();
        for part in parts {
            let Value::Array(part) = part else {
                return None;
            };
            keys.extend(part.iter().map(Value::text));
        }
        keys.sort_unstable();
        Some((number.clone(), cursor.clone(), parts.len(), keys))
    };
    sorted(real).is_some_and(|real| sorted(other) == Some(real))
}

/// Are the shares equal, in which every second value is a time to live?
fn near_shares(real: &[Value], other: &[Value]) -> bool {
    let near_left = |(index, (real, other)): (usize, (&Value, &Value))| {
        real == other || index % 2 == 1 && near(real, other, TOLERANCE_MS)
    };
    real.len() == other.len() && real.iter().zip(other).enumerate().all(near_left)
}

fn value(bytes: &[u8]) -> Value {
    parse(bytes).expect("a whole reply").0
}

/// Are both a time to live, or both none for the same reason? That of a lock is over before its key
/// has expired, if others are to claim it first.
fn near(real: &Value, other: &Value, tolerance: i64) -> bool {
    let is_none = |left| left == -1 || left == -2;
    match (real, other) {
        (Value::Integer(real), Value::Integer(other)) => {
            !is_none(*real) && !is_none(*other) && (real - other).abs() <= tolerance
        }
        _ => false,
    }
}

/// The reply to `HELLO` without the client's id, the only integer besides the protocol.
fn without_id(value: Value) -> Value {
    let mut after_id = false;
    let mut blank = |value: Value| {
        let blanked = std::mem::take(&mut after_id);
        after_id = value == Value::bulk("id");
        if blanked { Value::Integer(0) } else { value }
    };
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(blank).collect()),
        Value::Map(pairs) => Value::Map(
            pairs
                .into_iter()
                .map(|(key, value)| (blank(key), blank(value)))
                .collect(),
        ),
        other => other,
    }
}
