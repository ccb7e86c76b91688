//! The commands that read and change times to live.

use super::command::{Call, excerpt, integer};
use super::database::Database;
use super::reply::{Answer, Failure, OwnedReply};

pub(super) fn pttl(call: &mut Call<'_>) -> Answer {
    let (key, now_ms) = (call.args[1], call.now_ms);
    Ok(OwnedReply::Integer(remaining_ms(call.database(), now_ms, key)))
}

/// `TTL key`: rounded to the nearest second.
pub(super) fn ttl(call: &mut Call<'_>) -> Answer {
    let (key, now_ms) = (call.args[1], call.now_ms);
    let millis = remaining_ms(call.database(), now_ms, key);
    let rounded = millis.saturating_add(500) / 1000;
    Ok(OwnedReply::Integer(if millis < 0 { millis } else { rounded }))
}

/// The remaining milliseconds; -1 if the key does not expire, -2 if there is no key.
fn remaining_ms(database: &mut Database, now_ms: i64, key: &[u8]) -> i64 {
    match database.find(now_ms, key).map(|entry| entry.expires_at_ms) {
        None => -2,
        Some(None) => -1,
        Some(Some(when)) => when - now_ms,
    }
}

pub(super) fn expire(call: &mut Call<'_>) -> Answer {
    change(call, "expire", 1000)
}

pub(super) fn pexpire(call: &mut Call<'_>) -> Answer {
    change(call, "pexpire", 1)
}

/// `PEXPIREAT key milliseconds [NX | XX | GT | LT]`, on the node's wall clock.
pub(super) fn pexpireat(call: &mut Call<'_>) -> Answer {
    let conditions = Conditions::parse(&call.args[3..])?;
    let when = integer(call.args[2])?;
    let (key, now_ms) = (call.args[1], call.now_ms);
    let wall_ms = call.keyspace.options.wall_micros(call.now) / 1_000;
    let left = when.saturating_sub(i64::try_from(wall_ms).unwrap_or(i64::MAX));
    let changed = set_remaining(call.database(), now_ms, key, left, "pexpireat", &conditions)?;
    Ok(OwnedReply::Integer(changed.into()))
}

/// `EXPIRE key seconds [NX | XX | GT | LT]`, and the same in milliseconds.
fn change(call: &mut Call<'_>, name: &str, scale: i64) -> Answer {
    let conditions = Conditions::parse(&call.args[3..])?;
    let amount = integer(call.args[2])?;
    let (key, now_ms) = (call.args[1], call.now_ms);
    let millis = amount.checked_mul(scale).ok_or_else(|| Failure::invalid_expire(name))?;
    let changed = set_remaining(call.database(), now_ms, key, millis, name, &conditions)?;
    Ok(OwnedReply::Integer(changed.into()))
}

/// Sets the remaining time to live. Returns whether it did. A time that has passed deletes the key.
fn set_remaining(
    database: &mut Database,
    now_ms: i64,
    key: &[u8],
    millis: i64,
    command: &str,
    conditions: &Conditions,
) -> Result<bool, Failure> {
    let when = millis.checked_add(now_ms).ok_or_else(|| Failure::invalid_expire(command))?;
    let Some(entry) = database.find(now_ms, key) else { return Ok(false) };
    if !conditions.allow(when, entry.expires_at_ms) {
        return Ok(false);
    }
    entry.expires_at_ms = Some(when);
    if when <= now_ms {
        database.remove(now_ms, key);
    } else {
        database.touch(key);
    }
    Ok(true)
}

/// The conditions for changing a time to live.
#[derive(Default)]
struct Conditions {
    if_none: bool,
    if_any: bool,
    if_greater: bool,
    if_less: bool,
}

impl Conditions {
    fn parse(words: &[&[u8]]) -> Result<Self, Failure> {
        let mut conditions = Self::default();
        for word in words {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => conditions.if_none = true,
                b"XX" => conditions.if_any = true,
                b"GT" => conditions.if_greater = true,
                b"LT" => conditions.if_less = true,
                _ => {
                    let parts: [&[u8]; 2] = [b"ERR Unsupported option ", excerpt(word, usize::MAX)];
                    return Err(Failure::new(parts.concat()));
                }
            }
        }
        let Self { if_none, if_any, if_greater, if_less } = conditions;
        if if_none && (if_any || if_greater || if_less) {
            return Err(Failure::new(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if if_greater && if_less {
            return Err(Failure::new("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// A key that does not expire counts as one with an infinite time to live.
    fn allow(&self, when: i64, current: Option<i64>) -> bool {
        let greater = current.is_some_and(|current| when > current);
        let less = current.is_none_or(|current| when < current);
        (!self.if_none || current.is_none())
            && (!self.if_any || current.is_some())
            && (!self.if_greater || greater)
            && (!self.if_less || less)
    }
}
