//! The table of commands: finds the function that runs a command, after the checks.
//!
//! The checks are in the order of Redis: unknown command, wrong number of arguments, not
//! authenticated. So an unauthenticated client can find out which commands exist.

use super::database::{self, Database, bulk_or_null};
use super::keyspace::{self, Keyspace, millis};
use super::reply::{CommandError, CommandResult, OwnedReply, Protocol, count, refuse};
use super::session::{self, ConnectionState};
use super::{hash, lua, pushes, zset};
use redlatch_protocol::time::Time;

/// The call of a command: the node, the connection, the time, and the words.
pub(super) struct Call<'a> {
    pub(super) keyspace: &'a mut Keyspace,
    pub(super) session: &'a mut ConnectionState,
    pub(super) now: Time,
    /// The command's name and its arguments.
    pub(super) args: &'a [&'a [u8]],
    /// `KEYS` of the script that runs, if one does.
    pub(super) declared: Option<&'a [Vec<u8>]>,
}

impl<'a> Call<'a> {
    /// The database that the connection has selected, and the words.
    pub(super) fn parts(&mut self) -> (&mut Database, &'a [&'a [u8]]) {
        (
            self.keyspace.database(self.session.database, self.now_ms()),
            self.args,
        )
    }

    pub(super) fn now_ms(&self) -> i64 {
        millis(self.now)
    }

    /// The value of the key in the second word, which must be a string.
    fn string(&mut self) -> Result<Option<&[u8]>, CommandError> {
        let (database, args) = self.parts();
        database.string(args[1])
    }

    /// The protocol of the reply: a script gets all replies in RESP2.
    pub(super) fn protocol(&self) -> Protocol {
        self.declared
            .map_or(self.session.protocol, |_| Protocol::Resp2)
    }
}

struct KnownCommand {
    /// In lower case; `container|subcommand` for subcommands.
    name: &'static str,
    /// The number of words with the name: exact, or the minimum if negative.
    arity: isize,
    kind: Kind,
    run: Run,
}

type Run = fn(&mut Call<'_>) -> CommandResult;

use Kind::{Open, Plain, Reads, Session};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It may run in a script.
    Plain,
    /// It may run in a script, and changes nothing. The first arguments, up to this number, are the
    /// keys that it reads.
    Reads(usize),
    /// It is about the connection, and no script may run it.
    Session,
    /// The same, and it may run before the connection has authenticated.
    Open,
}

const fn command(name: &'static str, arity: isize, kind: Kind, run: Run) -> KnownCommand {
    KnownCommand {
        name,
        arity,
        kind,
        run,
    }
}

/// In the order of their names, subcommands behind their container.
const COMMANDS: &[KnownCommand] = &[
    command("auth", -2, Open, session::auth),
    command("client", -2, Session, container),
    command("client|caching", 3, Session, pushes::client_caching),
    command("client|getname", 2, Session, session::client_getname),
    command("client|id", 2, Session, |call| {
        Ok(OwnedReply::Integer(call.session.id))
    }),
    command("client|info", 2, Session, |call| {
        session::describe(call, "client|info")
    }),
    command("client|kill", -3, Session, session::client_kill),
    command("client|list", -2, Session, |call| {
        session::describe(call, "client|list")
    }),
    command("client|setname", 3, Session, session::client_setname),
    command("client|tracking", -3, Session, pushes::client_tracking),
    command("command", -1, Plain, |_| Ok(OwnedReply::Array(Vec::new()))),
    command("command|count", 2, Plain, |_| {
        Ok(OwnedReply::Integer(COMMANDS.len() as i64))
    }),
    command("command|docs", -2, Plain, |_| {
        Ok(OwnedReply::Map(Vec::new()))
    }),
    command("config", -2, Session, container),
    command("config|get", -3, Session, keyspace::config_get),
    command("dbsize", 1, Plain, |call| {
        Ok(count(call.parts().0.census().0))
    }),
    command("del", -2, Plain, database::del),
    command("echo", 2, Plain, |call| Ok(OwnedReply::bulk(call.args[1]))),
    command("eval", -3, Session, lua::eval),
    command("evalsha", -3, Session, lua::evalsha),
    command("exists", -2, Reads(usize::MAX), database::exists),
    command("expire", -3, Plain, |call| database::expire(call, "expire")),
    command("flushall", -1, Plain, |call| database::flush(call, None)),
    command("flushdb", -1, Plain, |call| {
        database::flush(call, Some(call.session.database))
    }),
    command("get", 2, Reads(1), |call| Ok(bulk_or_null(call.string()?))),
    command("hello", -1, Open, session::hello),
    command("hmget", -3, Reads(1), hash::hmget),
    command("hset", -4, Plain, hash::hset),
    command("info", -1, Plain, keyspace::info),
    command("lpush", -3, Plain, database::lpush),
    command("pexpire", -3, Plain, |call| {
        database::expire(call, "pexpire")
    }),
    command("pexpireat", -3, Plain, |call| {
        database::expire(call, "pexpireat")
    }),
    command("ping", -1, Plain, ping),
    command("pttl", 2, Reads(1), |call| {
        Ok(OwnedReply::Integer(database::remaining_ms(call)))
    }),
    command("publish", 3, Plain, pushes::publish),
    command("quit", -1, Open, session::quit),
    command("reset", 1, Open, session::reset),
    command("scan", -2, Reads(0), database::scan),
    command("script", -2, Session, container),
    command("script|exists", -3, Session, lua::script_exists),
    command("script|flush", -2, Session, lua::script_flush),
    command("script|load", 3, Session, lua::script_load),
    command("select", 2, Plain, session::select),
    command("set", -3, Plain, database::set),
    command("strlen", 2, Reads(1), |call| {
        Ok(count(call.string()?.map_or(0, <[u8]>::len)))
    }),
    command("subscribe", -2, Session, pushes::subscribe),
    command("time", 1, Plain, keyspace::time),
    command("ttl", 2, Reads(1), database::ttl),
    command("type", 2, Reads(1), database::kind),
    command("unsubscribe", -1, Session, pushes::unsubscribe),
    command("zadd", -4, Plain, zset::zadd),
    command("zcard", 2, Reads(1), |call| {
        zset::read(call, |set| count(set.len()))
    }),
    command("zcount", 4, Reads(1), zset::zcount),
    command("zrange", -4, Reads(1), zset::zrange),
    command("zrangebyscore", -4, Reads(1), zset::zrangebyscore),
    command("zrank", 3, Reads(1), zset::zrank),
    command("zrem", -3, Plain, zset::zrem),
    command("zremrangebyscore", 4, Plain, zset::zremrangebyscore),
    command("zscore", 3, Reads(1), zset::zscore),
];

impl Keyspace {
    /// Runs one command and returns its reply. Afterwards `CLIENT CACHING YES` no longer counts,
    /// unless this was a `CLIENT` command.
    ///
    /// `args` is the command's name and its arguments. `now` must not go back: an expired key is
    /// removed only when a command looks at it, so with an earlier time it may exist again, as in
    /// Redis when the host's clock is set back.
    pub fn execute(
        &mut self,
        now: Time,
        session: &mut ConnectionState,
        args: &[&[u8]],
    ) -> OwnedReply {
        let found = find(args);
        let ends_caching = !found
            .as_ref()
            .is_ok_and(|it| it.name.starts_with("client|"));
        let answer = found.and_then(|command| {
            if !command.fits(args) {
                return Err(wrong_arity(command.name));
            }
            if command.kind != Open && !session.is_authenticated {
                return refuse("NOAUTH Authentication required.");
            }
            let mut call = Call {
                keyspace: self,
                session,
                now,
                args,
                declared: None,
            };
            let answer = (command.run)(&mut call);
            if let Reads(keys) = command.kind {
                self.remember(session, args[1..].iter().take(keys));
            }
            answer
        });
        session.caching &= !ends_caching;
        self.settle();
        answer.unwrap_or_else(OwnedReply::from)
    }
}

/// Runs the command of a call of a script. After a command that reads, Redis 7.0 remembers all of
/// the script's `KEYS`, whichever was read.
pub(super) fn run_in_script(call: &mut Call<'_>) -> CommandResult {
    let command = find(call.args)
        .map_err(|_| CommandError::new("ERR Unknown Redis command called from script"))?;
    if !command.fits(call.args) {
        return refuse("ERR Wrong number of args calling Redis command from script");
    }
    if matches!(command.kind, Session | Open) {
        return refuse("ERR This Redis command is not allowed from script");
    }
    let answer = (command.run)(call);
    if let Reads(_) = command.kind {
        call.keyspace
            .remember(call.session, call.declared.unwrap_or_default());
    }
    answer
}

impl KnownCommand {
    /// Is this a number of words that it takes?
    fn fits(&self, args: &[&[u8]]) -> bool {
        match usize::try_from(self.arity) {
            Ok(exact) => args.len() == exact,
            Err(_) => args.len() >= self.arity.unsigned_abs(),
        }
    }

    /// Its own word, if it is a subcommand of this command.
    fn subcommand_of(&self, command: &Self) -> Option<&'static str> {
        self.name.strip_prefix(command.name)?.strip_prefix('|')
    }
}

fn find(args: &[&[u8]]) -> Result<&'static KnownCommand, CommandError> {
    let name = args.first().copied().unwrap_or_default();
    let Some(place) = place(name) else {
        return Err(unknown_command(name, args.get(1..).unwrap_or_default()));
    };
    let command = &COMMANDS[place];
    let mut subcommands = COMMANDS[place + 1..]
        .iter()
        .map_while(|other| Some((other, other.subcommand_of(command)?)))
        .peekable();
    match args.get(1) {
        Some(word) if subcommands.peek().is_some() => {
            match subcommands.find(|(_, name)| name.as_bytes().eq_ignore_ascii_case(word)) {
                Some((subcommand, _)) => Ok(subcommand),
                None => Err(unknown_subcommand(command.name, word)),
            }
        }
        _ => Ok(command),
    }
}

/// Where a command is in the table. `client|id` in one word is not a command.
fn place(name: &[u8]) -> Option<usize> {
    const NAME_MAX: usize = 32;
    let mut bytes = [0; NAME_MAX];
    let lower = bytes.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let place = COMMANDS
        .binary_search_by(|other| other.name.as_bytes().cmp(lower))
        .ok()?;
    (!lower.contains(&b'|')).then_some(place)
}

pub(super) fn wrong_arity(name: &str) -> CommandError {
    CommandError::new(format!(
        "ERR wrong number of arguments for '{name}' command"
    ))
}

/// The part of `word` that Redis puts into an error: up to a NUL, and at most `limit` bytes.
pub(super) fn excerpt(word: &[u8], limit: usize) -> &[u8] {
    let text = word.split(|byte| *byte == 0).next().unwrap_or_default();
    &text[..text.len().min(limit)]
}

fn unknown_command(name: &[u8], rest: &[&[u8]]) -> CommandError {
    const LIMIT: usize = 128;
    let mut shown = Vec::new();
    for word in rest {
        if shown.len() < LIMIT {
            let word = excerpt(word, LIMIT - shown.len());
            shown.extend_from_slice(&[b"'", word, b"' "].concat());
        }
    }
    let between: &[u8] = b"', with args beginning with: ";
    CommandError::new(
        [
            b"ERR unknown command '",
            excerpt(name, LIMIT),
            between,
            &shown,
        ]
        .concat(),
    )
}

fn unknown_subcommand(container: &str, word: &[u8]) -> CommandError {
    let hint = format!("'. Try {} HELP.", container.to_ascii_uppercase());
    let word = excerpt(word, 128);
    CommandError::new([b"ERR unknown subcommand '", word, hint.as_bytes()].concat())
}

/// Never runs: a container without a subcommand fails the check of its arity.
fn container(call: &mut Call<'_>) -> CommandResult {
    Err(unknown_command(call.args[0], &call.args[1..]))
}

fn ping(call: &mut Call<'_>) -> CommandResult {
    match call.args {
        [_] => Ok(OwnedReply::simple("PONG")),
        [_, message] => Ok(OwnedReply::bulk(*message)),
        _ => Err(wrong_arity("ping")),
    }
}

/// A number as Redis reads it: only in the form in which Redis prints it, so neither `+5` nor `05`.
pub(super) fn integer(text: &[u8]) -> Result<i64, CommandError> {
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<i64>().ok());
    let number = parsed.filter(|value| value.to_string().as_bytes() == text);
    number.ok_or_else(|| CommandError::new("ERR value is not an integer or out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_names() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
    }
}
