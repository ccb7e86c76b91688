//! The script cache, and the commands that run scripts.

use super::command::{Call, integer};
use super::lua::{self, Script};
use super::reply::{Answer, Failure, OwnedReply};
use super::strings::is_flush_mode;

/// `EVAL source numkeys [key ...] [arg ...]`
pub(super) fn eval(call: &mut Call<'_>) -> Answer {
    let Words { keys, argv } = Words::parse(call.args)?;
    let source = call.args[1];
    let sha1 = load(call, source)?;
    lua::run(call, &Script { sha1: &sha1, source, keys, argv })
}

/// `EVALSHA sha1 numkeys [key ...] [arg ...]`
pub(super) fn evalsha(call: &mut Call<'_>) -> Answer {
    let unknown = || Failure::new("NOSCRIPT No matching script. Please use EVAL.");
    // A text that cannot be a digest is refused before the number of keys is parsed.
    if call.args[1].len() != 40 {
        return Err(unknown());
    }
    let Words { keys, argv } = Words::parse(call.args)?;
    let sha1 = lower(call.args[1]);
    let source = call.keyspace.scripts.get(&sha1).ok_or_else(unknown)?.clone();
    lua::run(call, &Script { sha1: &sha1, source: &source, keys, argv })
}

/// `SCRIPT LOAD source`
pub(super) fn script_load(call: &mut Call<'_>) -> Answer {
    Ok(OwnedReply::bulk(load(call, call.args[2])?))
}

/// `SCRIPT EXISTS sha1 [sha1 ...]`
pub(super) fn script_exists(call: &mut Call<'_>) -> Answer {
    let known = call.args[2..].iter().map(|sha1| i64::from(is_cached(call, sha1)));
    Ok(OwnedReply::Array(known.map(OwnedReply::Integer).collect()))
}

/// `SCRIPT FLUSH [SYNC | ASYNC]`
pub(super) fn script_flush(call: &mut Call<'_>) -> Answer {
    match call.args {
        [_, _] => {}
        [_, _, mode] if is_flush_mode(mode) => {}
        _ => return Err(Failure::new("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    call.keyspace.flush_scripts();
    Ok(OwnedReply::OK)
}

/// Compiles a script, caches its source and returns its SHA-1.
fn load(call: &mut Call<'_>, source: &[u8]) -> Result<String, Failure> {
    let sha1 = lua::digest(source);
    if !call.keyspace.scripts.contains_key(&sha1) {
        lua::compile(&sha1, source)?;
        call.keyspace.scripts.insert(sha1.clone(), source.into());
    }
    Ok(sha1)
}

fn is_cached(call: &Call<'_>, sha1: &[u8]) -> bool {
    call.keyspace.scripts.contains_key(&lower(sha1))
}

/// The digest as it is a key of the cache.
fn lower(sha1: &[u8]) -> String {
    String::from_utf8_lossy(sha1).to_ascii_lowercase()
}

/// `KEYS` and `ARGV` of a script call.
struct Words<'a> {
    keys: &'a [&'a [u8]],
    argv: &'a [&'a [u8]],
}

impl<'a> Words<'a> {
    fn parse(args: &'a [&'a [u8]]) -> Result<Self, Failure> {
        let wanted = integer(args[2])?;
        let rest = &args[3..];
        let wanted = usize::try_from(wanted)
            .map_err(|_| Failure::new("ERR Number of keys can't be negative"))?;
        if wanted > rest.len() {
            return Err(Failure::new("ERR Number of keys can't be greater than number of args"));
        }
        let (keys, argv) = rest.split_at(wanted);
        Ok(Self { keys, argv })
    }
}
