//! The script cache, and this library's own scripts in Rust.
//!
//! An embedded node has no Lua. It knows the scripts of [`crate::node::script`] by their source and
//! their SHA-1, and has a Rust version of each, which the conformance test compares with the Lua in
//! a real server. Any other source is an error that says so.

use super::command::{Call, integer};
use super::reply::{Answer, Failure, OwnedReply};
use super::strings::is_flush_mode;
use super::{claims, holders, joining, queue, readers, scan, shares};
use crate::node::script;

/// `EVAL source numkeys [key ...] [arg ...]`
pub(super) fn eval(call: &mut Call<'_>) -> Answer {
    let words = Words::parse(call.args)?;
    let script = own_script(call.args[1])?;
    call.keyspace.scripts.insert(script.sha1);
    run(call, script, words)
}

/// `EVALSHA sha1 numkeys [key ...] [arg ...]`
pub(super) fn evalsha(call: &mut Call<'_>) -> Answer {
    let unknown = || Failure::new("NOSCRIPT No matching script. Please use EVAL.");
    // A text that cannot be a digest is refused before the number of keys is parsed.
    if call.args[1].len() != 40 {
        return Err(unknown());
    }
    let words = Words::parse(call.args)?;
    let script = cached(call, call.args[1]).ok_or_else(unknown)?;
    run(call, script, words)
}

/// `SCRIPT LOAD source`
pub(super) fn script_load(call: &mut Call<'_>) -> Answer {
    let script = own_script(call.args[2])?;
    call.keyspace.scripts.insert(script.sha1);
    Ok(OwnedReply::bulk(script.sha1))
}

/// `SCRIPT EXISTS sha1 [sha1 ...]`
pub(super) fn script_exists(call: &mut Call<'_>) -> Answer {
    let known = call.args[2..].iter().map(|sha1| i64::from(cached(call, sha1).is_some()));
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

fn own_script(source: &[u8]) -> Result<&'static script::Script, Failure> {
    script::ALL.iter().find(|script| script.source.as_bytes() == source).ok_or_else(|| {
        Failure::new("ERR embedded nodes run only redlatch's own scripts, and this is none of them")
    })
}

fn cached(call: &Call<'_>, sha1: &[u8]) -> Option<&'static script::Script> {
    script::ALL
        .iter()
        .filter(|script| call.keyspace.scripts.contains(script.sha1))
        .find(|script| script.sha1.as_bytes().eq_ignore_ascii_case(sha1))
}

/// `KEYS` and `ARGV` of a script call.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) keys: &'a [&'a [u8]],
    pub(super) argv: &'a [&'a [u8]],
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

/// An error, and the line of the script that raised it.
pub(super) type Raised = (Failure, u32);

/// The result of a script.
pub(super) type Outcome = Result<OwnedReply, Raised>;

fn run<'a>(call: &mut Call<'a>, script: &script::Script, words: Words<'a>) -> Answer {
    let run = match *script {
        script if script == script::RELEASE => holders::release,
        script if script == script::EXTEND => holders::extend,
        script if script == script::HANDOFF => claims::handoff,
        script if script == script::CLAIM => claims::claim,
        script if script == script::FENCE => claims::fence,
        script if script == script::RELEASE_ALL => holders::release_all,
        script if script == script::EXTEND_ALL => holders::extend_all,
        script if script == script::REMOVE => holders::remove_seen,
        script if script == script::LEAVE => holders::leave,
        script if script == script::RESTORE => claims::restore,
        script if script == script::QUEUE => joining::queue,
        script if script == script::TURN => queue::turn,
        script if script == script::LEAVE_QUEUE => queue::leave_queue,
        script if script == script::LISTEN => queue::listen,
        script if script == script::SHARE => readers::share,
        script if script == script::EXTEND_SHARED => shares::extend_shared,
        script if script == script::RESTORE_SHARED => shares::restore_shared,
        script if script == script::RELEASE_SHARED => shares::release_shared,
        script if script == script::RELEASE_READER => readers::release_reader,
        script if script == script::SCAN => scan::scan,
        _ => holders::inspect,
    };
    call.declared = words.keys;
    run(call, words).map_err(|(failure, line)| failure.in_script(script.sha1, line))
}
