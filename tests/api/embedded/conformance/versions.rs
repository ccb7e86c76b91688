//! How servers of other versions differ from redis-server 7.0.15, which the model of a node copies.
//!
//! On that version nothing here applies: all replies must be equal. On others, each row names
//! commands and how far they are compared, with the reason.

use super::rig::filled_in;
use support::server_program::ServerProgram;

/// How far a command is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Compared {
    /// It is sent to no side: what it leaves behind would differ.
    NotSent,
    /// It is sent to all sides, and the replies may differ.
    NotEqual,
    /// Both replies must be errors, of any words.
    Errors,
}

/// The versions that differ, by the number of the Redis that they agree with: Valkey and Redict
/// began as 7.2.
enum Versions {
    All,
    Before(u32, u32),
    From(u32, u32),
}

/// The first that fits counts. A command fits if it has the name and, anywhere behind it, the other
/// words. `{script}` stands for a script's source or digest, `<overflow>` for a number of seconds
/// that is too large, `<lax>` for one that is not written as usual; `*` is any command.
const DIFFERENCES: &[(Versions, &str, Compared, &str)] = {
    use Compared::{Errors, NotEqual, NotSent};
    use Versions::{All, Before, From};
    &[
        (Before(6, 0), "HELLO", NotSent, "of 6.0"),
        (Before(6, 0), "AUTH", NotSent, "users are of 6.0"),
        (Before(6, 0), "CLIENT TRACKING", NotSent, "of 6.0"),
        (Before(6, 0), "CLIENT CACHING", NotSent, "of 6.0"),
        (Before(6, 0), "SET KEEPTTL", NotSent, "of 6.0"),
        (Before(7, 0), "SET NX GET", NotSent, "together since 7.0"),
        (Before(6, 2), "SET GET", NotSent, "of 6.2"),
        (Before(6, 2), "SET EXAT", NotSent, "of 6.2"),
        (Before(6, 2), "SET PXAT", NotSent, "of 6.2"),
        (
            Before(3, 2),
            "SET NX XX",
            NotSent,
            "3.0 sees no contradiction in it",
        ),
        (Before(7, 0), "EXPIRE NX", NotSent, "of 7.0"),
        (Before(7, 0), "EXPIRE XX", NotSent, "of 7.0"),
        (Before(7, 0), "EXPIRE GT", NotSent, "of 7.0"),
        (Before(7, 0), "EXPIRE LT", NotSent, "of 7.0"),
        (Before(7, 0), "PEXPIRE NX", NotSent, "of 7.0"),
        (Before(7, 0), "PEXPIRE XX", NotSent, "of 7.0"),
        (Before(7, 0), "PEXPIRE GT", NotSent, "of 7.0"),
        (Before(7, 0), "PEXPIRE LT", NotSent, "of 7.0"),
        (
            Before(3, 2),
            "SET <lax>",
            NotSent,
            "3.0 takes +5, 05 and nothing for numbers",
        ),
        (Before(3, 2), "EXPIRE <lax>", NotSent, "as above"),
        (Before(3, 2), "PEXPIRE <lax>", NotSent, "as above"),
        (
            Before(3, 2),
            "SET PX EX",
            NotSent,
            "3.0 sees no contradiction in it",
        ),
        (
            Before(6, 2),
            "* <overflow>",
            NotSent,
            "a time is not checked for overflow",
        ),
        (
            Before(6, 2),
            "SELECT 4294967296",
            NotSent,
            "the number is cut to 32 bits",
        ),
        (
            Before(4, 0),
            "DBSIZE",
            NotEqual,
            "keys that have expired are counted for a while",
        ),
        (Before(3, 0), "EXISTS", NotEqual, "several keys since 3.0.3"),
        (
            Before(6, 2),
            "FLUSHDB",
            NotSent,
            "tracked keys outlive it, and SYNC is of 6.2",
        ),
        (Before(6, 2), "FLUSHALL", NotSent, "as above"),
        (Before(6, 2), "SCRIPT FLUSH SYNC", NotSent, "of 6.2"),
        (Before(6, 2), "SCRIPT FLUSH ASYNC", NotSent, "of 6.2"),
        (
            Before(5, 0),
            "* {share}",
            NotSent,
            "a script may not write after it has read the clock",
        ),
        (Before(5, 0), "* {keep_shared}", NotSent, "as above"),
        (Before(5, 0), "* {release_shared}", NotSent, "as above"),
        (Before(5, 0), "* {release_reader}", NotSent, "as above"),
        (Before(6, 2), "RESET", NotSent, "of 6.2"),
        (
            Before(7, 0),
            "RESET",
            NotEqual,
            "without a password it is refused, and changes nothing",
        ),
        (
            Before(7, 0),
            "SCRIPT EXISTS",
            NotEqual,
            "without a digest it answers an empty list",
        ),
        (Before(6, 2), "CLIENT INFO", NotEqual, "of 6.2"),
        (Before(5, 0), "CLIENT ID", NotEqual, "of 5.0"),
        (
            Before(7, 0),
            "CLIENT KILL ID",
            NotEqual,
            "an id that no connection has is not an error",
        ),
        (
            Before(7, 0),
            "CLIENT NONSENSE",
            NotSent,
            "it does not end CLIENT CACHING YES",
        ),
        (From(7, 2), "CLIENT SETINFO", NotEqual, "of 7.2"),
        (
            Before(7, 0),
            "INFO server replication",
            NotEqual,
            "several sections since 7.0",
        ),
        (Before(7, 0), "COMMAND DOCS", NotEqual, "of 7.0"),
        (
            All,
            "HELLO",
            NotEqual,
            "it says the server's name, version and modules",
        ),
        (
            All,
            "*",
            Errors,
            "the words of errors change from version to version",
        ),
    ]
};

/// How far this command is compared with the reply of the tests' server; `None` if the replies must
/// be equal.
pub(crate) fn compared(words: &[Vec<u8>]) -> Option<Compared> {
    let program = ServerProgram::tested();
    if program.is_default() {
        return None;
    }
    let version = program.agrees_with();
    let differs = |versions: &Versions| match *versions {
        Versions::All => true,
        Versions::Before(major, minor) => version < (major, minor),
        Versions::From(major, minor) => version >= (major, minor),
    };
    let found = DIFFERENCES
        .iter()
        .find(|row| differs(&row.0) && fits(row.1, words));
    found.map(|row| row.2)
}

/// What is compared of a transcript of `pushes.rs` on other versions. The words of errors change. A
/// tracked script makes 7.0 remember the keys in `KEYS`, and later versions those that it reads, so
/// messages about keys are not compared where scripts run.
pub(crate) fn comparable_transcript(text: &str) -> String {
    if ServerProgram::tested().is_default() {
        return text.to_owned();
    }
    let has_scripts = text.contains("EVALSHA {queue") || text.contains("EVALSHA {share");
    let is_kept = |line: &&str| !has_scripts || !line.contains("invalidate");
    let without_words = |line: &str| match line.trim_start().starts_with('-') {
        true => "    -\n".to_owned(),
        false => format!("{line}\n"),
    };
    text.lines().filter(is_kept).map(without_words).collect()
}

/// May a message that a command sends to its own connection come before its reply? Since 8.0, that
/// of `FLUSHDB` does.
pub(crate) fn may_message_come_first() -> bool {
    !ServerProgram::tested().is_default()
}

fn fits(pattern: &str, words: &[Vec<u8>]) -> bool {
    let mut pattern = pattern.split(' ');
    let is_named = match (pattern.next(), words.first()) {
        (Some("*"), _) => true,
        (Some(name), Some(word)) => is_same(name, word),
        _ => false,
    };
    is_named && pattern.all(|meant| words[1..].iter().any(|word| is_same(meant, word)))
}

fn is_same(meant: &str, word: &[u8]) -> bool {
    if meant == "<overflow>" {
        let number = std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse::<i128>().ok());
        return number.is_some_and(|number| number.unsigned_abs() >= u64::MAX as u128 / 2_000);
    }
    if meant == "<lax>" {
        let digits = word.trim_ascii_start();
        let digits = digits.strip_prefix(b"-").unwrap_or(digits);
        return digits != word || !matches!(digits.first(), Some(b'1'..=b'9' | b'a'..=b'z'));
    }
    let script = meant.strip_suffix('}').map(|name| format!("{name}.sha1}}"));
    match script {
        Some(digest) => word == filled_in(meant) || word == filled_in(&digest),
        None => word.eq_ignore_ascii_case(meant.as_bytes()),
    }
}
