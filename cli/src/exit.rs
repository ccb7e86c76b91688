//! The exit codes: one table, for the code, `--help`, the manual page and the guide.

use super::duration;
use redlatch::error::{NodeAnswer, ServerErrorKind, TtlError};
use redlatch::{ConfigError, Error, NoQuorum, NodeError, NodeKind, OncePerError, RegisterError};

pub(crate) const SUCCESS: u8 = 0;
pub(crate) const HELD: u8 = 1;
pub(crate) const USAGE: u8 = 2;
pub(crate) const AWAITED: u8 = 3;
pub(crate) const NO_VALUE: u8 = 4;
pub(crate) const OTHER_VERSION: u8 = 5;
pub(crate) const STALE: u8 = 6;
pub(crate) const NOT_REPAIRED: u8 = 7;
pub(crate) const COMMITTED: u8 = 8;
pub(crate) const FINDINGS: u8 = 9;
pub(crate) const NOT_DUE: u8 = 10;
pub(crate) const NO_QUORUM: u8 = 69;
pub(crate) const FAILED: u8 = 70;
pub(crate) const QUARANTINED: u8 = 71;
pub(crate) const LOST: u8 = 75;
pub(crate) const UNKNOWN: u8 = 76;
pub(crate) const NOT_ADMITTED: u8 = 77;
pub(crate) const NO_GROUP: u8 = 78;
pub(crate) const NOT_EXECUTABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;
/// Plus the number of a signal.
pub(crate) const SIGNAL: u8 = 128;

/// The signal of a closed pipe, which a command that lists something would die of.
const SIGPIPE: u8 = 13;

/// What can be done about a quarantine, besides waiting for its end.
/// The restart guard cannot be turned off if one of the nodes is a group.
/// Of a group that was in use before, nothing can.
pub(crate) fn way_out(is_group: bool, was_in_use: bool) -> &'static str {
    match (is_group, was_in_use) {
        (true, true) => {
            "wait for the end: the group was in use before it had this master, and a lock of that \
             time may still be held"
        }
        (true, false) => {
            "redlatch adopt --yes does without the wait, for a group that is used for the first \
             time"
        }
        (false, _) => {
            "--no-restart-guard does without the wait: for tests, and if the nodes write every \
             change to disk; otherwise two can hold the lock"
        }
    }
}

/// Every code, and what it means.
pub(crate) const TABLE: [(&str, &str); 21] = [
    ("0", "success"),
    (
        "1",
        "another client holds the lock (run: -E sets another code), or there is nothing to release",
    ),
    (
        "2",
        "the arguments, a file or the nodes' URLs cannot be used",
    ),
    (
        "3",
        "others wait for the lock and are served first (run: -E sets another code)",
    ),
    (
        "4",
        "there is no such register, or the transaction is over or never was (abort)",
    ),
    ("5", "the register has another version (registers cas)"),
    (
        "6",
        "a larger fencing token has written to the register (registers set --fence)",
    ),
    (
        "7",
        "a node has got no vote, and nothing is lost (registers repair, registers trust)",
    ),
    (
        "8",
        "the transaction is committed, and cannot be aborted (transactions abort)",
    ),
    (
        "9",
        "locks can be granted, but there are warnings, or errors of some nodes (doctor)",
    ),
    (
        "10",
        "the command is not due yet (run --once-per: -E sets another code)",
    ),
    ("69", "too few nodes gave an answer that counts"),
    (
        "70",
        "another failure: the operating system, or data of another program under the name",
    ),
    (
        "71",
        "the nodes are quarantined: too few have been up, or had their master, for long enough",
    ),
    (
        "75",
        "the lock was lost, and the command was stopped or had ended too late",
    ),
    (
        "76",
        "the register may have been changed, or be changed later: too few nodes answered",
    ),
    (
        "77",
        "too few nodes admit the client, or are what their URLs name: a wrong password or user, a \
         missing right, another kind of server",
    ),
    (
        "78",
        "the nodes are not a group for registers, are of another or already of one, or would \
         forget",
    ),
    ("126", "the command cannot be executed"),
    ("127", "the command was not found"),
    (
        "128+n",
        "the command, or redlatch while it waited, was ended by signal n",
    ),
];

/// What is not in the table.
pub(crate) const OF_THE_COMMAND: &str =
    "`redlatch run` exits as its command did, if that ran under the lock to its end.";

/// The table as text, for `--help`.
pub(crate) fn help() -> String {
    let mut lines = String::new();
    for (code, meaning) in TABLE {
        lines += &format!("  {code:<7}{meaning}\n");
    }
    format!("Exit codes:\n{lines}\n{OF_THE_COMMAND}")
}

/// The text of the library's errors, with the options of this program in place of the methods that
/// the library names.
pub(crate) fn words(text: &impl ToString) -> String {
    let names = [
        ("TlsSettings::ca_file", "--tls-ca"),
        ("TlsSettings::bundled_roots", "--tls-bundled-roots"),
        (
            "TlsSettings::client_certificate",
            "--tls-cert and --tls-key",
        ),
        ("Registers::replace", "registers repair --replace"),
        ("the setting max_ttl", "--max-ttl"),
        ("hold_at_least of", "--hold-at-least of"),
        ("max_hold of", "--max-hold of"),
        ("(setting restart_guard)", "(--no-restart-guard, for tests)"),
        ("LockClient::adopt_groups", "redlatch adopt"),
        (
            "cargo add redlatch --features",
            "build redlatch-cli with --features",
        ),
    ];
    names
        .iter()
        .fold(text.to_string(), |text, (method, option)| {
            text.replace(method, option)
        })
}

/// Why the program ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// For stderr. Empty if there is nothing to say.
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(code: u8, text: &impl ToString) -> Self {
        Self {
            code,
            text: words(text),
        }
    }

    pub(crate) fn usage(text: &impl ToString) -> Self {
        Self::new(USAGE, text)
    }

    pub(crate) fn silent(code: u8) -> Self {
        Self::new(code, &"")
    }

    /// Whoever read the output has enough of it.
    pub(crate) fn closed_pipe() -> Self {
        Self::silent(SIGNAL + SIGPIPE)
    }

    pub(crate) fn system(what: &str, error: &std::io::Error) -> Self {
        Self::new(FAILED, &format!("{what}: {error}"))
    }
}

fn no_quorum(error: &NoQuorum) -> u8 {
    let failures = error.reports().iter().map(|report| match &report.answer {
        NodeAnswer::Failed(failure) => Some(failure),
        _ => None,
    });
    too_few(&failures.collect::<Vec<_>>(), error.needed())
}

/// The code for too few nodes, by what is wrong with each: do so many refuse the client that the
/// others are not a majority?
pub(crate) fn too_few(failures: &[Option<&NodeError>], needed: usize) -> u8 {
    let others = failures
        .iter()
        .filter(|failure| !failure.is_some_and(is_refusal))
        .count();
    if others < needed {
        NOT_ADMITTED
    } else {
        NO_QUORUM
    }
}

/// Does the node refuse the client, or what it asks for?
fn is_refusal(failure: &NodeError) -> bool {
    match failure {
        NodeError::Server(error) => {
            matches!(
                error.kind,
                ServerErrorKind::Authentication | ServerErrorKind::NoPermission
            )
        }
        NodeError::Refused { is_permanent, .. } => *is_permanent,
        NodeError::LookupRefused(_) | NodeError::WrongServer(_) => true,
        _ => false,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::NoQuorum(reports) if reports.quarantine().is_some() => {
                let left = duration::show(reports.quarantine().unwrap_or_default());
                let is_group = reports
                    .reports()
                    .iter()
                    .any(|it| it.kind == NodeKind::Group);
                let was_in_use = reports.reports().iter().any(|it| it.former_reign.is_some());
                let why = if is_group {
                    "too few groups have had their master for max-ttl and failover_bound, and one \
                     that was failed over"
                } else {
                    "too few nodes have been up for max-ttl, and one that has restarted"
                };
                let text = format!(
                    "quarantined for another {left}: {why} may have forgotten who holds the lock; \
                     {}",
                    way_out(is_group, was_in_use)
                );
                Self::new(QUARANTINED, &text)
            }
            Error::NoQuorum(inner) => Self::new(no_quorum(inner), &error),
            Error::TooSlow { .. } => Self::new(NO_QUORUM, &error),
            Error::Lost(_) => Self::new(LOST, &error),
            Error::Ttl(TtlError::TooLong { .. }) => {
                let hint = "(--max-ttl sets it; all clients that share locks must set the same)";
                Self::usage(&format!("{error} {hint}"))
            }
            Error::Config(ConfigError::System(_)) => Self::new(FAILED, &error),
            Error::Register(inner) => Self::from(inner.clone()),
            Error::OncePer(OncePerError::Clocks(_)) => Self::new(NO_QUORUM, &error),
            Error::OncePer(OncePerError::Period { .. }) => Self::usage(&error),
            Error::Config(_) | Error::Resource(_) | Error::Ttl(_) | Error::SameServer { .. } => {
                Self::usage(&error)
            }
            Error::NotResumable(_) => Self::usage(&error),
            _ => Self::new(FAILED, &error),
        }
    }
}

impl From<RegisterError> for Failure {
    fn from(error: RegisterError) -> Self {
        let code = match &error {
            error if error.may_have_happened() => UNKNOWN,
            RegisterError::NoQuorum { error, .. } => no_quorum(error),
            RegisterError::Resource(_)
            | RegisterError::TooLong { .. }
            | RegisterError::ZooKeeper
            | RegisterError::Replicated { .. } => USAGE,
            RegisterError::NotRepaired { .. } | RegisterError::PlaceTaken { .. } => NOT_REPAIRED,
            RegisterError::NotFormed
            | RegisterError::AlreadyFormed
            | RegisterError::NodesDiffer { .. }
            | RegisterError::NotDurable { .. } => NO_GROUP,
            _ => FAILED,
        };
        Self::new(code, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_code_once_and_in_order() {
        let numbers = [
            SUCCESS,
            HELD,
            USAGE,
            AWAITED,
            NO_VALUE,
            OTHER_VERSION,
            STALE,
            NOT_REPAIRED,
            COMMITTED,
            FINDINGS,
            NOT_DUE,
            NO_QUORUM,
            FAILED,
            QUARANTINED,
            LOST,
            UNKNOWN,
            NOT_ADMITTED,
            NO_GROUP,
            NOT_EXECUTABLE,
            NOT_FOUND,
        ];
        let mut codes: Vec<String> = numbers.iter().map(u8::to_string).collect();
        codes.push(format!("{SIGNAL}+n"));
        let listed: Vec<&str> = TABLE.iter().map(|(code, _)| *code).collect();
        assert_eq!(listed, codes);
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn a_change_that_may_have_been_made_has_a_code_of_its_own() {
        assert_eq!(Failure::from(RegisterError::Unknown).code, UNKNOWN);
        assert_eq!(Failure::from(RegisterError::NotFormed).code, NO_GROUP);
        assert_eq!(
            Failure::from(RegisterError::OtherFormat {
                url: None,
                format: None
            })
            .code,
            FAILED
        );
    }

    #[test]
    fn the_guide_has_the_table() {
        let guide = include_str!("../../src/guide/command.md");
        for (code, meaning) in TABLE {
            assert!(
                guide.contains(&format!("| `{code}` | {meaning} |")),
                "{code}"
            );
        }
    }
}
