//! The commands on keys and values: `SET`, `GET`, `DEL` and others.

use super::command::{Call, integer};
use super::database::{Entry, Value};
use super::reply::{Answer, Failure, OwnedReply};

/// `SET key value [NX | XX] [GET] [KEEPTTL | EX seconds | PX milliseconds]`
pub(super) fn set(call: &mut Call<'_>) -> Answer {
    let options = SetOptions::parse(&call.args[3..])?;
    let (key, value, now_ms) = (call.args[1], call.args[2], call.now_ms);
    let expires_at_ms = options.expires_at_ms(now_ms)?;
    let database = call.database();
    let before = match options.get {
        true => Some(bulk_or_null(database.string(now_ms, key)?)),
        false => None,
    };
    let found = database.find(now_ms, key);
    let refused = match options.condition {
        Some(Condition::IfAbsent) => found.is_some(),
        Some(Condition::IfPresent) => found.is_none(),
        None => false,
    };
    if refused {
        return Ok(before.unwrap_or(OwnedReply::Null));
    }
    let kept = found.filter(|_| options.keep_ttl).and_then(|entry| entry.expires_at_ms);
    let expires_at_ms = expires_at_ms.or(kept);
    database.insert(now_ms, key, Entry { value: Value::String(value.to_vec()), expires_at_ms });
    Ok(before.unwrap_or(OwnedReply::OK))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    IfAbsent,
    IfPresent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Millis,
    UnixSeconds,
    UnixMillis,
}

/// The options of `SET`.
#[derive(Default)]
struct SetOptions<'a> {
    condition: Option<Condition>,
    get: bool,
    keep_ttl: bool,
    ttl: Option<(Unit, &'a [u8])>,
}

impl<'a> SetOptions<'a> {
    fn parse(words: &[&'a [u8]]) -> Result<Self, Failure> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => options.set_condition(Condition::IfAbsent)?,
                b"XX" => options.set_condition(Condition::IfPresent)?,
                b"GET" => options.get = true,
                b"KEEPTTL" if options.ttl.is_none() => options.keep_ttl = true,
                b"EX" => options.set_ttl(Unit::Seconds, words.next())?,
                b"PX" => options.set_ttl(Unit::Millis, words.next())?,
                b"EXAT" => options.set_ttl(Unit::UnixSeconds, words.next())?,
                b"PXAT" => options.set_ttl(Unit::UnixMillis, words.next())?,
                _ => return Err(Failure::syntax()),
            }
        }
        Ok(options)
    }

    /// `NX NX` is allowed; `NX XX` is not.
    fn set_condition(&mut self, condition: Condition) -> Result<(), Failure> {
        if self.condition.is_some_and(|other| other != condition) {
            return Err(Failure::syntax());
        }
        self.condition = Some(condition);
        Ok(())
    }

    /// In `PX 5 PX 6` the last counts; two different units are refused.
    fn set_ttl(&mut self, unit: Unit, text: Option<&&'a [u8]>) -> Result<(), Failure> {
        let other_unit = self.ttl.is_some_and(|(before, _)| before != unit);
        match text {
            Some(text) if !other_unit && !self.keep_ttl => {
                self.ttl = Some((unit, text));
                Ok(())
            }
            _ => Err(Failure::syntax()),
        }
    }

    fn expires_at_ms(&self, now_ms: i64) -> Result<Option<i64>, Failure> {
        let Some((unit, text)) = self.ttl else { return Ok(None) };
        let amount = integer(text)?;
        let scale = if matches!(unit, Unit::Seconds | Unit::UnixSeconds) { 1000 } else { 1 };
        let millis = Some(amount).filter(|amount| *amount > 0).and_then(|a| a.checked_mul(scale));
        let ends = match unit {
            Unit::Seconds | Unit::Millis => millis.and_then(|ms| ms.checked_add(now_ms)),
            Unit::UnixSeconds | Unit::UnixMillis if millis.is_none() => None,
            Unit::UnixSeconds | Unit::UnixMillis => {
                return Err(Failure::new("ERR embedded nodes do not support EXAT and PXAT"));
            }
        };
        ends.map(Some).ok_or_else(|| Failure::invalid_expire("set"))
    }
}

pub(super) fn get(call: &mut Call<'_>) -> Answer {
    let (key, now_ms) = (call.args[1], call.now_ms);
    Ok(bulk_or_null(call.database().string(now_ms, key)?))
}

fn bulk_or_null(value: Option<&[u8]>) -> OwnedReply {
    value.map_or(OwnedReply::Null, OwnedReply::bulk)
}

pub(super) fn strlen(call: &mut Call<'_>) -> Answer {
    let (key, now_ms) = (call.args[1], call.now_ms);
    let len = call.database().string(now_ms, key)?.map_or(0, <[u8]>::len);
    Ok(count(len))
}

/// `TYPE key`
pub(super) fn kind(call: &mut Call<'_>) -> Answer {
    let (key, now_ms) = (call.args[1], call.now_ms);
    Ok(OwnedReply::simple(match call.database().find(now_ms, key) {
        None => "none",
        Some(Entry { value: Value::String(_), .. }) => "string",
        Some(Entry { value: Value::List(_), .. }) => "list",
        Some(Entry { value: Value::SortedSet(_), .. }) => "zset",
    }))
}

pub(super) fn del(call: &mut Call<'_>) -> Answer {
    let (keys, now_ms) = (&call.args[1..], call.now_ms);
    let database = call.database();
    Ok(count(keys.iter().filter(|key| database.remove(now_ms, key)).count()))
}

/// `EXISTS key [key ...]`: a repeated key counts again.
pub(super) fn exists(call: &mut Call<'_>) -> Answer {
    let (keys, now_ms) = (&call.args[1..], call.now_ms);
    let database = call.database();
    Ok(count(keys.iter().filter(|key| database.find(now_ms, key).is_some()).count()))
}

/// `LPUSH key value [value ...]`, the only command that makes a list.
pub(super) fn lpush(call: &mut Call<'_>) -> Answer {
    let (key, values, now_ms) = (call.args[1], &call.args[2..], call.now_ms);
    let pushed = values.iter().rev().map(|value| value.to_vec());
    let database = call.database();
    match database.find(now_ms, key) {
        Some(Entry { value: Value::List(list), .. }) => {
            list.splice(0..0, pushed);
            let len = list.len();
            database.touch(key);
            Ok(count(len))
        }
        Some(_) => Err(Failure::wrong_type()),
        None => {
            let value = Value::List(pushed.collect());
            database.insert(now_ms, key, Entry { value, expires_at_ms: None });
            Ok(count(values.len()))
        }
    }
}

pub(super) fn dbsize(call: &mut Call<'_>) -> Answer {
    let now_ms = call.now_ms;
    Ok(count(call.database().census(now_ms).0))
}

pub(super) fn flushdb(call: &mut Call<'_>) -> Answer {
    check_flush_mode(call.args)?;
    call.keyspace.flush(Some(call.session.database));
    Ok(OwnedReply::OK)
}

pub(super) fn flushall(call: &mut Call<'_>) -> Answer {
    check_flush_mode(call.args)?;
    call.keyspace.flush(None);
    Ok(OwnedReply::OK)
}

fn check_flush_mode(args: &[&[u8]]) -> Result<(), Failure> {
    match args {
        [_] => Ok(()),
        [_, mode] if is_flush_mode(mode) => Ok(()),
        _ => Err(Failure::syntax()),
    }
}

pub(super) fn is_flush_mode(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"SYNC") || word.eq_ignore_ascii_case(b"ASYNC")
}

/// A number of things.
pub(super) fn count(amount: usize) -> OwnedReply {
    OwnedReply::Integer(i64::try_from(amount).unwrap_or(i64::MAX))
}
