//! Values of Lua from replies and the other way round, as Redis converts them.

use super::Arguments;
use crate::reply::{CommandError, OwnedReply, decimal, refuse};
use mlua::{BorrowedBytes, Lua, Table, Value};

/// How deep the tables that a script returns may be nested.
const DEPTH_MAX: usize = 128;

/// The words of a command that a script runs.
pub(super) fn words_of(values: &[Value]) -> Result<Vec<LuaText<'_>>, CommandError> {
    if values.is_empty() {
        return refuse("ERR Please specify at least one argument for this redis lib call");
    }
    let refusal = "ERR Lua redis lib command arguments must be strings or integers";
    values
        .iter()
        .map(|value| word(value).ok_or_else(|| CommandError::new(refusal)))
        .collect()
}

/// A string of Lua, or the text of a number.
pub(super) enum LuaText<'a> {
    String(BorrowedBytes<'a>),
    Number(String),
}

impl AsRef<[u8]> for LuaText<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::String(bytes) => bytes,
            Self::Number(text) => text.as_bytes(),
        }
    }
}

pub(super) fn word(value: &Value) -> Option<LuaText<'_>> {
    match value {
        Value::String(text) => Some(LuaText::String(text.as_bytes())),
        Value::Integer(number) => Some(LuaText::Number(decimal(*number as f64))),
        Value::Number(number) => Some(LuaText::Number(decimal(*number))),
        _ => None,
    }
}

/// What `redis.call` returns.
pub(super) fn to_lua(lua: &Lua, reply: OwnedReply) -> mlua::Result<Value> {
    match reply {
        OwnedReply::Simple(status) => field(lua, "ok", &status),
        OwnedReply::Error(error) => field(lua, "err", &error),
        OwnedReply::Integer(number) => Ok(Value::Integer(number)),
        OwnedReply::Bulk(bytes) => to_text(lua, &bytes),
        OwnedReply::Double(number) => to_text(lua, decimal(number).as_bytes()),
        OwnedReply::Text(shown) => to_text(lua, shown.as_bytes()),
        OwnedReply::Null => Ok(Value::Boolean(false)),
        OwnedReply::Array(items) | OwnedReply::Push(items) | OwnedReply::Messages(items) => {
            list(lua, items)
        }
        OwnedReply::Map(pairs) => {
            let pairs = pairs.into_iter();
            let items = pairs.flat_map(|(name, value)| [name, value]);
            list(lua, items.collect())
        }
    }
}

/// A table with this field alone.
fn field(lua: &Lua, name: &str, bytes: &[u8]) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, lua.create_string(bytes)?)?;
    Ok(Value::Table(table))
}

/// `KEYS` or `ARGV`.
pub(super) fn words_to_lua(lua: &Lua, words: Arguments<'_>) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(words.len(), 0)?;
    for word in words {
        table.raw_push(lua.create_string(word)?)?;
    }
    Ok(table)
}

pub(super) fn to_text(lua: &Lua, bytes: &[u8]) -> mlua::Result<Value> {
    lua.create_string(bytes).map(Value::String)
}

fn list(lua: &Lua, items: Vec<OwnedReply>) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(items.len(), 0)?;
    for (index, item) in (1..).zip(items) {
        table.raw_seti(index, to_lua(lua, item)?)?;
    }
    Ok(Value::Table(table))
}

/// The reply of a script that returns this value.
pub(super) fn reply(value: &Value, depth: usize) -> mlua::Result<OwnedReply> {
    Ok(match value {
        Value::String(text) => OwnedReply::Bulk(text.as_bytes().to_vec()),
        Value::Integer(number) => OwnedReply::Integer(*number),
        Value::Number(number) => OwnedReply::Integer(*number as i64),
        Value::Boolean(true) => OwnedReply::Integer(1),
        Value::Table(_) if depth == DEPTH_MAX => {
            CommandError::new("ERR reached lua stack limit").into()
        }
        Value::Table(table) => return table_reply(table, depth),
        _ => OwnedReply::Null,
    })
}

/// An error, a status, or the list up to the first nil.
fn table_reply(table: &Table, depth: usize) -> mlua::Result<OwnedReply> {
    if let Value::String(error) = table.raw_get("err")? {
        return Ok(CommandError::new(error.as_bytes().to_vec()).into());
    }
    if let Value::String(status) = table.raw_get("ok")? {
        return Ok(OwnedReply::Simple(
            CommandError::new(status.as_bytes().to_vec()).0.into(),
        ));
    }
    let mut items = Vec::new();
    for index in 1_i64.. {
        match table.raw_get(index)? {
            Value::Nil => break,
            value => items.push(reply(&value, depth + 1)?),
        }
    }
    Ok(OwnedReply::Array(items))
}
