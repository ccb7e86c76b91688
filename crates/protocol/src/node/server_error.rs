//! Server errors: their meaning, and how their texts are shown.

use super::secret;
use std::{error, fmt};

/// An error that a server answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerError {
    /// Its meaning.
    pub kind: ServerErrorKind,
    /// The server's text, including the code. Control characters, marks of bidirectional text and
    /// characters of no width are escaped: `\n`, `\u{202e}`.
    pub text: String,
}

impl ServerError {
    /// The length at which the server's text is cut off, in bytes, escapes included.
    pub const TEXT_MAX: usize = 256;

    /// Reads an error reply. Stars replace quotations of `secret`, or only the code is shown.
    #[must_use]
    pub fn parse(reply: &[u8], secret: Option<&[u8]>) -> Self {
        let text = String::from_utf8_lossy(reply);
        let kind = ServerErrorKind::of(&text);
        Self {
            kind,
            text: presentable(reply, secret),
        }
    }

    /// Does the server not know the script of this request?
    pub(super) fn is_unknown_script(&self) -> bool {
        ServerErrorKind::code(self.text.as_bytes()) == NO_SCRIPT.as_bytes()
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl error::Error for ServerError {}

/// A server's text as it may be shown: without the secret, without characters that change how the
/// text around them is displayed, and not too long. Every text from a server goes through here.
pub fn presentable(text: &[u8], secret: Option<&[u8]>) -> String {
    escaped(text, secret, &[])
}

/// As [`presentable`], between quotation marks, with quotation marks inside the text escaped.
pub(super) fn quoted(text: &[u8], secret: Option<&[u8]>) -> String {
    format!("\"{}\"", escaped(text, secret, &['"', '\\']))
}

fn escaped(text: &[u8], secret: Option<&[u8]>, marks: &[char]) -> String {
    // This length suffices: no character becomes shorter when shown, and a character that is cut
    // off here begins behind the shown part.
    let length = ServerError::TEXT_MAX + char::MAX.len_utf8();
    let code = ServerErrorKind::code(text);
    let secret = secret.unwrap_or_default();
    let without_secret = secret::without(text, secret, code.len(), length).unwrap_or_else(|| {
        let blank = if code.is_empty() { "" } else { " " };
        [code, blank.as_bytes(), secret::WITHHELD.as_bytes()].concat()
    });
    let mut shown = String::new();
    for character in String::from_utf8_lossy(&without_secret).chars() {
        let length = shown.len();
        if is_unseen(character) || marks.contains(&character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
        if shown.len() > ServerError::TEXT_MAX {
            shown.truncate(length);
            break;
        }
    }
    shown
}

/// Does this character act on a terminal or a log, change the order of the text around it, or
/// stay invisible? Control characters (C0, DEL, C1), line and paragraph separators, the marks of
/// bidirectional text, and characters of no width.
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// What can be done about an error of Redis or Valkey. Which error it is, the code at the beginning
/// of [`ServerError::text`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerErrorKind {
    /// `NOAUTH`, `WRONGPASS`, `DENIED`: the server does not admit this client. Its URL has no
    /// password or a wrong one, or a wrong user, or a password for a server without one; or the
    /// server is in protected mode.
    Authentication,
    /// `NOPERM`: the user lacks a right.
    NoPermission,
    /// The database number of the URL does not exist there.
    NoSuchDatabase,
    /// A command does not exist there, or not for scripts: the server is too old, the command was
    /// renamed, or a proxy does not support it.
    UnknownCommand,
    /// `ERR max number of clients reached`.
    TooManyClients,
    /// `LOADING`, `BUSY`, `UNKILLABLE`, `TRYAGAIN`: the server reads its data after a start, runs a
    /// script, or moves keys of a cluster. It will answer later.
    Busy,
    /// `MISCONF`, `OOM`, `NOREPLICAS`: the server refuses to write until it can write to its disk,
    /// has memory again, or enough replicas.
    WriteRefused,
    /// `READONLY`, `MASTERDOWN`: the server is a replica. Nodes must be masters.
    Replica,
    /// `MOVED`, `ASK`, `CROSSSLOT`, `CLUSTERDOWN`: the server is a node of a cluster. Nodes must be
    /// independent.
    Cluster,
    /// `WRONGTYPE`: the key holds a value that is not a lock.
    WrongType,
    /// `FENCE`: the key of a lock's fencing counter holds no number, or one too large to be raised.
    Counter,
    /// Any other.
    Other,
}

/// The codes at the beginning of an error reply, and their meaning.
const CODES: [(&[&str], ServerErrorKind); 9] = [
    (
        &["NOAUTH", "WRONGPASS", "DENIED"],
        ServerErrorKind::Authentication,
    ),
    (&["NOPERM"], ServerErrorKind::NoPermission),
    (
        &["LOADING", "BUSY", "UNKILLABLE", "TRYAGAIN"],
        ServerErrorKind::Busy,
    ),
    (
        &["MISCONF", "OOM", "NOREPLICAS"],
        ServerErrorKind::WriteRefused,
    ),
    (&["READONLY", "MASTERDOWN"], ServerErrorKind::Replica),
    (
        &["MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN"],
        ServerErrorKind::Cluster,
    ),
    (&["WRONGTYPE"], ServerErrorKind::WrongType),
    (&["FENCE"], ServerErrorKind::Counter),
    // These are answered by the client itself, and so are of no other kind.
    (&[NO_SCRIPT, "NOPROTO", "EXECABORT"], ServerErrorKind::Other),
];

/// The code of an error about a script that the server does not know.
const NO_SCRIPT: &str = "NOSCRIPT";

/// The beginnings of errors without a code of their own, and their meaning.
const BEGINNINGS: [(&str, ServerErrorKind); 20] = [
    ("ERR max number of clients", ServerErrorKind::TooManyClients),
    ("ERR unknown command", ServerErrorKind::UnknownCommand),
    // Of scripts: Redis, and Valkey from 8 on.
    (
        "ERR Unknown Redis command called from",
        ServerErrorKind::UnknownCommand,
    ),
    (
        "ERR Unknown command called from",
        ServerErrorKind::UnknownCommand,
    ),
    (
        "ERR This Redis command is not allowed from script",
        ServerErrorKind::UnknownCommand,
    ),
    (
        "ERR This Valkey command is not allowed from script",
        ServerErrorKind::UnknownCommand,
    ),
    // A script that has read the clock. Before version 5.
    (
        "ERR Write commands not allowed after non deterministic",
        ServerErrorKind::UnknownCommand,
    ),
    (
        "ERR Script attempted to access a non local key",
        ServerErrorKind::Cluster,
    ),
    // Envoy as a proxy.
    ("unsupported command", ServerErrorKind::UnknownCommand),
    // Servers before version 6 have no codes for these.
    (
        "ERR operation not permitted",
        ServerErrorKind::Authentication,
    ),
    ("ERR invalid password", ServerErrorKind::Authentication),
    ("ERR Client sent AUTH", ServerErrorKind::Authentication),
    ("ERR AUTH", ServerErrorKind::Authentication),
    (
        "ERR wrong number of arguments for 'auth'",
        ServerErrorKind::Authentication,
    ),
    (
        "ERR Operation against a key holding the wrong kind of value",
        ServerErrorKind::WrongType,
    ),
    ("ERR invalid DB index", ServerErrorKind::NoSuchDatabase),
    ("ERR DB index", ServerErrorKind::NoSuchDatabase),
    ("ERR SELECT is not allowed", ServerErrorKind::NoSuchDatabase),
    // The user may run the script, but not the commands in it. Version 7.0, and later ones.
    (
        "ERR The user executing the script can't",
        ServerErrorKind::NoPermission,
    ),
    ("ERR ACL failure in script", ServerErrorKind::NoPermission),
];

impl ServerErrorKind {
    /// The code at the beginning of an error; empty if the code is unknown.
    fn code(text: &[u8]) -> &[u8] {
        let first = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let mut codes = CODES.iter().flat_map(|(codes, _)| *codes);
        let is_code = first == b"ERR" || codes.any(|code| code.as_bytes() == first);
        if is_code { first } else { &[] }
    }

    fn of(text: &str) -> Self {
        let named = |word: &str| CODES.iter().find(|(codes, _)| codes.contains(&word));
        let first = text.split(' ').next().unwrap_or_default();
        if let Some((_, kind)) = named(first) {
            return *kind;
        }
        if let Some((_, kind)) = BEGINNINGS.iter().find(|(words, _)| text.starts_with(words)) {
            return *kind;
        }
        // Before version 7, an error inside a script was wrapped in another: "ERR Error running
        // script (call to f_…): @user_script:1: @user_script: 1: -READONLY You can't write …". One
        // that the script passes on begins with the latter place. What has no code there often has
        // no "ERR" either.
        if text.starts_with("ERR Error running script") || text.starts_with("@user_script: ") {
            let mut words = text.split(' ').map(|word| word.trim_start_matches('-'));
            if let Some((_, kind)) = words.find_map(named) {
                return *kind;
            }
            for part in text.split(": ") {
                let inner = part.trim_start_matches("ERR ");
                for (words, kind) in BEGINNINGS {
                    if inner.starts_with(words.trim_start_matches("ERR ")) {
                        return kind;
                    }
                }
            }
        }
        Self::Other
    }

    /// Does the server lack the command, or the user the right to use it? It will refuse the same
    /// command again; any other error may be unsolicited.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self, Self::NoPermission | Self::UnknownCommand)
    }

    /// See `NodeError::is_permanent`.
    pub(super) fn is_permanent(self) -> bool {
        matches!(
            self,
            Self::Authentication
                | Self::NoPermission
                | Self::NoSuchDatabase
                | Self::UnknownCommand
                | Self::Cluster
                | Self::Counter
        )
    }
}

/// Does this error say that the server lacks this command, or that the user may not run it? Not
/// that a script may not do something.
pub(super) fn refuses(text: &[u8], command: &str) -> bool {
    let text = String::from_utf8_lossy(text);
    let words = text.to_ascii_lowercase();
    let named = [
        format!("run the '{command}' command"),
        format!("unknown command '{command}'"),
        format!("unknown command `{command}`"),
        // Envoy as a proxy.
        format!("unsupported command '{command}'"),
    ];
    ServerErrorKind::of(&text).is_refusal() && named.iter().any(|words_of| words.contains(words_of))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> ServerErrorKind {
        ServerError::parse(text.as_bytes(), None).kind
    }

    #[test]
    fn every_code_is_recognised_with_and_without_words_behind_it() {
        for (codes, expected) in CODES {
            for code in codes {
                assert_eq!(kind(code), expected);
                assert_eq!(kind(&format!("{code} some words")), expected);
                assert_eq!(kind(&format!("{code}S some words")), ServerErrorKind::Other);
            }
        }
        for text in [
            "",
            "ERR",
            "ERR  two  spaces",
            "err lower",
            "ERRNOAUTH",
            " NOAUTH",
        ] {
            assert_eq!(kind(text), ServerErrorKind::Other, "{text:?}");
        }
    }

    #[test]
    fn a_refused_command_is_told_from_what_a_script_may_not_do() {
        let refused = [
            // Redis 6, 7.0 and from 7.2 on; without the command: 4, 5, 7; Envoy.
            "NOPERM this user has no permissions to run the 'eval' command or its subcommand",
            "NOPERM this user has no permissions to run the 'eval' command",
            "NOPERM User app has no permissions to run the 'eval' command",
            "ERR unknown command 'EVAL'",
            "ERR unknown command `EVAL`, with args beginning with: `return 1`, `0`, ",
            "ERR unknown command 'EVAL', with args beginning with: 'return 1' '0' ",
            "unsupported command 'eval'",
        ];
        for text in refused {
            assert!(refuses(text.as_bytes(), "eval"), "{text}");
            assert!(!refuses(text.as_bytes(), "evalsha"), "{text}");
        }
        let others = [
            "NOPERM User app has no permissions to access the 'eval' key",
            "NOPERM ACL failure in script: User app has no permissions to run the 'get' command",
            "LOADING run the 'eval' command later",
        ];
        for text in others {
            assert!(!refuses(text.as_bytes(), "eval"), "{text}");
        }
    }

    #[test]
    fn the_errors_of_real_servers_are_recognised() {
        let table = [
            (
                "ERR max number of clients reached",
                ServerErrorKind::TooManyClients,
            ),
            (
                "ERR unknown command 'FOO', with args beginning with: ",
                ServerErrorKind::UnknownCommand,
            ),
            (
                "unsupported command 'time'",
                ServerErrorKind::UnknownCommand,
            ),
            (
                "ERR DB index is out of range",
                ServerErrorKind::NoSuchDatabase,
            ),
            (
                "ERR The user executing the script can't run this command or subcommand script: \
                 1ccb475e, on @user_script:4.",
                ServerErrorKind::NoPermission,
            ),
            (
                "ERR Client sent AUTH, but no password is set",
                ServerErrorKind::Authentication,
            ),
            (
                "ERR AUTH <password> called without any password configured for the default user.",
                ServerErrorKind::Authentication,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn the_errors_of_scripts_on_real_servers_are_recognised() {
        let table = [
            // A right that is missing inside a script: Redis 6.0 and 6.2, 7.0, 7.2 and Valkey.
            (
                "ERR Error running script (call to f_b6f2): @user_script:1: @user_script: 1: The \
                 user executing the script can't run this command or subcommand",
                ServerErrorKind::NoPermission,
            ),
            (
                "ERR Error running script (call to f_b6f2): @user_script:1: @user_script: 1: The \
                 user executing the script can't access at least one of the keys mentioned in the \
                 command arguments",
                ServerErrorKind::NoPermission,
            ),
            (
                "ERR Error running script (call to f_b6f2): @user_script:1: @user_script: 1: \
                 -NOPERM this user has no permissions to run the 'pttl' command",
                ServerErrorKind::NoPermission,
            ),
            (
                "@user_script: 4: The user executing the script can't run this command or \
                 subcommand",
                ServerErrorKind::NoPermission,
            ),
            (
                "ERR The user executing the script can't access at least one of the keys \
                 mentioned in the command arguments script: b6f2, on @user_script:1.",
                ServerErrorKind::NoPermission,
            ),
            (
                "ERR ACL failure in script: User lock has no permissions to run the 'pttl' \
                 command script: b6f2, on @user_script:1.",
                ServerErrorKind::NoPermission,
            ),
            (
                "NOPERM ACL failure in script: User lock has no permissions to access the 'a' key",
                ServerErrorKind::NoPermission,
            ),
            (
                "ERR Error running script (call to f_e0): @user_script:1: @user_script: 1: \
                 -READONLY You can't write against a read only replica.",
                ServerErrorKind::Replica,
            ),
            (
                "ERR Error running script (call to f_e0): @user_script:1: WRONGTYPE Operation \
                 against a key holding the wrong kind of value",
                ServerErrorKind::WrongType,
            ),
        ];
        for (text, expected) in table {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn a_command_that_scripts_cannot_call_is_an_unknown_one() {
        let wrapped = "ERR Error running script (call to f_b6f2): @user_script:1: ";
        let renamed = "Unknown Redis command called from";
        let refused = "This Redis command is not allowed from script";
        let since = "This Valkey command is not allowed from script";
        let random = "Write commands not allowed after non deterministic commands";
        // Redis from 7 on, Valkey from 8 and 9 on, Redis before 7, before 5, before 3.2.
        for text in [
            format!("ERR {renamed} script script: b6f2, on @user_script:1."),
            "ERR Unknown command called from script script: b6f2, on @user_script:1.".to_owned(),
            format!("ERR {refused} script: b6f2, on @user_script:1."),
            format!("ERR {since} script: b6f2, on @user_script:1."),
            format!("{wrapped}@user_script: 1: {renamed} Lua script"),
            format!("@user_script: 1: {renamed} Lua script"),
            format!("{wrapped}@user_script: 1: {refused}s"),
            format!("{wrapped}@user_script: 2: {random}. Call redis.replicate_commands() at"),
            format!("{wrapped}@user_script: 2: {random}"),
        ] {
            assert_eq!(kind(&text), ServerErrorKind::UnknownCommand, "{text}");
            assert!(kind(&text).is_permanent());
        }
    }

    #[test]
    fn the_errors_of_redis_before_version_4_are_recognised() {
        assert_eq!(
            kind("ERR invalid DB index"),
            ServerErrorKind::NoSuchDatabase
        );
        // Redis 2.6 has no code for it.
        let wrong = "ERR Operation against a key holding the wrong kind of value";
        let script = "ERR Error running script (call to f_e0): @user_script:1: ";
        assert_eq!(kind(wrong), ServerErrorKind::WrongType);
        assert_eq!(
            kind(&format!("{script}{wrong}")),
            ServerErrorKind::WrongType
        );
    }

    #[test]
    fn no_password_is_quoted() {
        let secret = Some(&b"s3cr:et"[..]);
        let quoted = "ERR unknown command 'AUTH', with args beginning with: 's3cr:et' ";
        assert_eq!(
            ServerError::parse(quoted.as_bytes(), secret).text,
            "ERR unknown command 'AUTH'"
        );
        let odd = ServerError::parse(b"ERR your password s3cr:et is odd", secret);
        assert_eq!(odd.text, "ERR your password *** is odd");
        let cut = ServerError::parse(b"ERR unknown command 'AUTH s3cr", secret);
        assert_eq!(cut.text, "ERR (not shown: it may quote a secret)");
        let word = ServerError::parse(b"NOPERM no permissions", Some(b"no"));
        assert_eq!(word.text, "NOPERM (not shown: it may quote a secret)");
        assert_eq!(word.kind, ServerErrorKind::NoPermission);
        let letter = ServerError::parse(b"NOPERM no permissions", Some(b"p"));
        assert_eq!(letter.text, "NOPERM no permissions");
        assert_eq!(
            presentable(b"a no", Some(b"no")),
            "(not shown: it may quote a secret)"
        );
    }

    #[test]
    fn any_text_is_made_presentable() {
        let long = ServerError::parse("ERR \u{e9}".repeat(1_000).as_bytes(), None);
        assert!(long.text.len() <= ServerError::TEXT_MAX);
        assert_eq!(
            ServerError::parse(b"ERR \xff\xfe", None).text,
            "ERR \u{fffd}\u{fffd}"
        );
        assert_eq!(
            ServerError::parse(b"ERR a\tb\x1b[31m", None).text,
            "ERR a\\tb\\u{1b}[31m"
        );
        assert_eq!(
            ServerError::parse(b"ERR \"a\\b\"", None).text,
            "ERR \"a\\b\""
        );
        assert_eq!(ServerError::parse(b"ERR a", Some(b"")).text, "ERR a");
    }

    #[test]
    fn characters_that_change_how_a_text_is_seen_are_escaped() {
        let marks = [
            0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x2060, 0xfeff, 0xad, 0x180e,
        ];
        let ranges = [
            0x00..=0x1f,
            0x7f..=0x9f,
            0x200b..=0x200d,
            0x202a..=0x202e,
            0x2066..=0x2069,
        ];
        for code in marks.into_iter().chain(ranges.into_iter().flatten()) {
            let character = char::from_u32(code).expect("no surrogate");
            let text = ServerError::parse(format!("ERR a{character}b").as_bytes(), None).text;
            assert_eq!(text, format!("ERR a{}b", character.escape_default()));
            assert!(
                !text.contains(character) && text.len() > "ERR a b".len(),
                "{code:x}"
            );
            let text = quoted(format!("a{character}b").as_bytes(), None);
            assert_eq!(text, format!("\"a{}b\"", character.escape_default()));
        }
        let words = "ERR \u{e9} e\u{301} \u{65e5}\u{672c} \u{1f512} \u{627}";
        assert_eq!(ServerError::parse(words.as_bytes(), None).text, words);
    }

    #[test]
    fn no_text_is_longer_for_its_escapes_and_none_is_cut_in_two() {
        for filler in ["\u{202e}", "\n", "\0", "\u{e9}", "\"", "x\u{e0041}"] {
            for offset in 0..8 {
                let long = "y".repeat(offset) + &filler.repeat(1_000);
                let text = ServerError::parse(long.as_bytes(), None).text;
                assert!(text.len() <= ServerError::TEXT_MAX, "{filler:?}");
                assert!(text.len() > ServerError::TEXT_MAX - 10, "{filler:?}");
                assert_eq!(
                    text.matches("\\u{").count(),
                    text.matches('}').count(),
                    "{text}"
                );
                assert!(
                    !text.ends_with('\\') && !text.contains('\u{fffd}'),
                    "{text}"
                );
                let text = quoted(long.as_bytes(), None);
                assert!(text.len() <= ServerError::TEXT_MAX + 2, "{filler:?}");
            }
        }
    }

    #[test]
    fn a_password_of_odd_characters_is_blotted_out_too() {
        let text = |reply: &[u8], secret: &[u8]| ServerError::parse(reply, Some(secret)).text;
        let secret = "p\u{202e}w\u{1b}".as_bytes();
        assert_eq!(
            text(&[b"ERR '", secret, b"' is odd"].concat(), secret),
            "ERR '***' is odd"
        );
        // A server writes blanks for line breaks, so that its reply stays one line.
        assert_eq!(
            text(b"ERR 'p  w\n' is odd", b"p\r\nw\n"),
            "ERR '***' is odd"
        );
        assert_eq!(text(b"ERR 'p  w ' is odd", b"p\r\nw\n"), "ERR '***' is odd");
        assert_eq!(
            text(b"ERR 'p\r\nw\n' is odd", b"p\r\nw\n"),
            "ERR '***' is odd"
        );
        // Invalid UTF-8 is found even if it would be decoded together with its neighbours.
        assert_eq!(text(b"ERR pw\xc3\xa9", b"pw\xc3"), "ERR ***\u{fffd}");
        assert_eq!(text("ERR pw\u{fffd}".as_bytes(), b"pw\xc3"), "ERR ***");
        let secret = b"4, with args beginning with b";
        assert_eq!(
            text(&[b"ERR ", &secret[..], b" no"].concat(), secret),
            "ERR *** no"
        );
        let late = [&b"x".repeat(ServerError::TEXT_MAX - 2)[..], b"s3cret"].concat();
        assert!(!text(&late, b"s3cret").contains("s3"));
    }
}
