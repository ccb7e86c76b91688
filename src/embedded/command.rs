//! The table of commands: finds the function that runs a command, after the checks.
//!
//! The checks are in the order of Redis: unknown command, wrong number of arguments, not
//! authenticated. So an unauthenticated client can find out which commands exist.

use super::database::Database;
use super::keyspace::{Keyspace, millis};
use super::reply::{Answer, Failure, OwnedReply};
use super::session::ConnectionState;
use super::{expiry, info, scripts, session, strings, tracking};
use crate::clock::Time;

/// The call of a command: the node, the connection, the time, and the words.
pub(super) struct Call<'a> {
    pub(super) keyspace: &'a mut Keyspace,
    pub(super) session: &'a mut ConnectionState,
    pub(super) now: Time,
    pub(super) now_ms: i64,
    /// The command's name and its arguments.
    pub(super) args: &'a [&'a [u8]],
    /// `KEYS` of the script that runs, if one does.
    pub(super) declared: &'a [&'a [u8]],
}

impl Call<'_> {
    pub(super) fn database(&mut self) -> &mut Database {
        self.keyspace.database(self.session.database)
    }

    /// A call of another command at the same time on the same connection, as in a script.
    pub(super) fn with_args<'b>(&'b mut self, args: &'b [&'b [u8]]) -> Call<'b> {
        let Self { now, now_ms, declared, .. } = *self;
        Call { keyspace: self.keyspace, session: self.session, now, now_ms, args, declared }
    }

    /// A script has read a key. Redis 7.0 then remembers all keys in `KEYS`, whichever was read.
    pub(super) fn remember_declared(&mut self) {
        self.keyspace.remember(self.session, self.declared);
    }
}

struct Command {
    /// In lower case; `container|subcommand` for subcommands.
    name: &'static str,
    /// The number of words with the name: exact, or the minimum if negative.
    arity: isize,
    /// Allowed before the connection has authenticated.
    open: bool,
    /// Changes nothing, and its arguments are the keys that it reads.
    reads: bool,
    run: fn(&mut Call<'_>) -> Answer,
}

const fn command(name: &'static str, arity: isize, run: fn(&mut Call<'_>) -> Answer) -> Command {
    Command { name, arity, open: false, reads: false, run }
}

const fn reader(name: &'static str, arity: isize, run: fn(&mut Call<'_>) -> Answer) -> Command {
    Command { name, arity, open: false, reads: true, run }
}

const fn open(name: &'static str, arity: isize, run: fn(&mut Call<'_>) -> Answer) -> Command {
    Command { name, arity, open: true, reads: false, run }
}

const COMMANDS: &[Command] = &[
    open("auth", -2, session::auth),
    command("client", -2, container),
    command("client|caching", 3, tracking::client_caching),
    command("client|getname", 2, session::client_getname),
    command("client|id", 2, session::client_id),
    command("client|info", 2, session::client_info),
    command("client|kill", -3, session::client_kill),
    command("client|list", -2, session::client_list),
    command("client|setname", 3, session::client_setname),
    command("client|tracking", -3, tracking::client_tracking),
    command("command", -1, |_| Ok(OwnedReply::Array(Vec::new()))),
    command("command|count", 2, |_| Ok(OwnedReply::Integer(COMMANDS.len() as i64))),
    command("command|docs", -2, |_| Ok(OwnedReply::Map(Vec::new()))),
    command("config", -2, container),
    command("config|get", -3, info::config_get),
    command("dbsize", 1, strings::dbsize),
    command("del", -2, strings::del),
    command("echo", 2, |call| Ok(OwnedReply::bulk(call.args[1]))),
    command("eval", -3, scripts::eval),
    command("evalsha", -3, scripts::evalsha),
    reader("exists", -2, strings::exists),
    command("expire", -3, expiry::expire),
    command("flushall", -1, strings::flushall),
    command("flushdb", -1, strings::flushdb),
    reader("get", 2, strings::get),
    open("hello", -1, session::hello),
    command("info", -1, info::info),
    command("lpush", -3, strings::lpush),
    command("pexpire", -3, expiry::pexpire),
    command("ping", -1, ping),
    reader("pttl", 2, expiry::pttl),
    open("quit", -1, session::quit),
    open("reset", 1, session::reset),
    command("script", -2, container),
    command("script|exists", -3, scripts::script_exists),
    command("script|flush", -2, scripts::script_flush),
    command("script|load", 3, scripts::script_load),
    command("select", 2, session::select),
    command("set", -3, strings::set),
    reader("strlen", 2, strings::strlen),
    command("time", 1, info::time),
    reader("ttl", 2, expiry::ttl),
    reader("type", 2, strings::kind),
];

/// Runs the command in `args`. Afterwards `CLIENT CACHING YES` no longer counts, unless this was a
/// `CLIENT` command.
pub(super) fn run(
    keyspace: &mut Keyspace,
    now: Time,
    session: &mut ConnectionState,
    args: &[&[u8]],
) -> Answer {
    let found = find(args);
    let ends_caching = !found.as_ref().is_ok_and(|command| command.name.starts_with("client|"));
    let answer = found.and_then(|command| {
        check(command, session, args)?;
        let now_ms = millis(now);
        let answer =
            (command.run)(&mut Call { keyspace, session, now, now_ms, args, declared: &[] });
        if command.reads {
            keyspace.remember(session, &args[1..]);
        }
        answer
    });
    session.caching &= !ends_caching;
    keyspace.settle();
    answer
}

fn check(command: &Command, session: &ConnectionState, args: &[&[u8]]) -> Result<(), Failure> {
    let fits = match usize::try_from(command.arity) {
        Ok(exact) => args.len() == exact,
        Err(_) => args.len() >= command.arity.unsigned_abs(),
    };
    if !fits {
        return Err(wrong_arity(command.name));
    }
    if !command.open && !session.authenticated {
        return Err(Failure::new("NOAUTH Authentication required."));
    }
    Ok(())
}

fn find(args: &[&[u8]]) -> Result<&'static Command, Failure> {
    let name = args.first().copied().unwrap_or_default();
    // Only names without `|` match: `client|id` in one word is an unknown command.
    let same = |command: &&Command| command.name.as_bytes().eq_ignore_ascii_case(name);
    let Some(command) = COMMANDS.iter().filter(|c| !c.name.contains('|')).find(same) else {
        return Err(unknown_command(name, &args[args.len().min(1)..]));
    };
    let mut subcommands = COMMANDS
        .iter()
        .filter_map(|other| {
            Some((other, other.name.strip_prefix(command.name)?.strip_prefix('|')?))
        })
        .peekable();
    match args.get(1) {
        Some(word) if subcommands.peek().is_some() => subcommands
            .find(|(_, subcommand)| subcommand.as_bytes().eq_ignore_ascii_case(word))
            .map(|(subcommand, _)| subcommand)
            .ok_or_else(|| unknown_subcommand(command.name, word)),
        _ => Ok(command),
    }
}

pub(super) fn wrong_arity(name: &str) -> Failure {
    Failure::new(format!("ERR wrong number of arguments for '{name}' command"))
}

/// The part of `word` that Redis puts into an error: up to a NUL, and at most `limit` bytes.
pub(super) fn excerpt(word: &[u8], limit: usize) -> &[u8] {
    let text = word.split(|byte| *byte == 0).next().unwrap_or_default();
    &text[..text.len().min(limit)]
}

fn unknown_command(name: &[u8], rest: &[&[u8]]) -> Failure {
    const LIMIT: usize = 128;
    let mut shown = Vec::new();
    for word in rest {
        if shown.len() >= LIMIT {
            break;
        }
        let word = excerpt(word, LIMIT - shown.len());
        shown.extend_from_slice(&[b"'", word, b"' "].concat());
    }
    let name = excerpt(name, LIMIT);
    let parts: [&[u8]; 4] =
        [b"ERR unknown command '", name, b"', with args beginning with: ", &shown];
    Failure::new(parts.concat())
}

fn unknown_subcommand(container: &str, word: &[u8]) -> Failure {
    let hint = format!("'. Try {} HELP.", container.to_ascii_uppercase());
    let parts: [&[u8]; 3] = [b"ERR unknown subcommand '", excerpt(word, 128), hint.as_bytes()];
    Failure::new(parts.concat())
}

/// Never runs: a container without a subcommand fails the check of its arity.
fn container(call: &mut Call<'_>) -> Answer {
    Err(unknown_command(call.args[0], &call.args[1..]))
}

fn ping(call: &mut Call<'_>) -> Answer {
    match call.args {
        [_] => Ok(OwnedReply::Simple("PONG")),
        [_, message] => Ok(OwnedReply::bulk(*message)),
        _ => Err(wrong_arity("ping")),
    }
}

/// A number as Redis reads it: only in the form in which Redis prints it, so neither `+5` nor `05`.
pub(super) fn integer(text: &[u8]) -> Result<i64, Failure> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    parsed.filter(|value| value.to_string().as_bytes() == text).ok_or_else(Failure::not_an_integer)
}
