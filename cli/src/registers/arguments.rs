//! The arguments of `redlatch registers`.

use crate::{duration, exit, names};
use clap::{Args, Subcommand};
use redlatch::FencingToken;
use redlatch::register::Version;
use std::ffi::OsString;
use std::time::Duration;

/// Read and change registers: small values that a majority of the nodes agrees on.
///
/// A register has a name, a value of up to 16 KiB, and a version, which grows with every change.
/// It needs no lock and does not expire. The nodes keep registers once they are made a group by
/// `redlatch registers form`. There are none on ZooKeeper.
#[derive(Debug, Args)]
#[command(after_long_help = format!("Examples:\n{EXAMPLES}\n{}", exit::help()))]
pub(crate) struct RegistersArguments {
    #[command(subcommand)]
    pub(crate) command: RegistersCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegistersCommand {
    Form(FormArguments),
    List(ListArguments),
    Get(GetArguments),
    Set(SetArguments),
    Cas(CasArguments),
    Delete(DeleteArguments),
    Sweep(SweepArguments),
    Status(StatusArguments),
    Repair(RepairArguments),
    Trust(TrustArguments),
}

/// Make the nodes a group that keeps registers, once, before the first register is used.
///
/// All nodes must answer, and none may belong to a group. Each must keep what it has answered:
/// `appendonly yes`, `appendfsync always`, no replicas, and no allkeys-* policy.
#[derive(Debug, Args)]
pub(crate) struct FormArguments {
    /// Accept nodes without these settings. Such a node loses its vote when it is started again,
    /// and with a majority of them all registers are lost.
    #[arg(long)]
    pub(crate) in_memory: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the registers that have a value: their versions, fencing tokens and lengths in bytes.
///
/// Reads the names of the keys from one node after another with SCAN, 500 in a step, and then
/// reads each register.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Only registers whose names match, such as 'jobs:*'.
    #[arg(default_value = "*")]
    pub(crate) pattern: OsString,
    /// As JSON: a list of objects.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the value of a register.
///
/// The bytes are printed as they are. On a terminal, what would act on it is shown with escapes,
/// and a line break follows.
#[derive(Debug, Args)]
pub(crate) struct GetArguments {
    /// The name of the register.
    #[arg(add = names::registers())]
    pub(crate) name: OsString,
    /// As JSON, with the version and the fencing token. A value that is not UTF-8 is a list of
    /// bytes.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Replace the value of a register, or create it.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// The name of the register.
    #[arg(add = names::registers())]
    pub(crate) name: OsString,
    #[command(flatten)]
    pub(crate) value: ValueArgument,
    /// Write nothing if a larger fencing token has written before, as REDLATCH_FENCING_TOKEN of
    /// `redlatch run --fenced`.
    #[arg(long, value_name = "TOKEN", value_parser = parse_token)]
    pub(crate) fence: Option<FencingToken>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Replace the value of a register if its version is still the one that was seen.
#[derive(Debug, Args)]
pub(crate) struct CasArguments {
    /// The name of the register.
    #[arg(add = names::registers())]
    pub(crate) name: OsString,
    #[command(flatten)]
    pub(crate) value: ValueArgument,
    /// The version that was seen, or none: then there must be no value.
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    pub(crate) version: SeenVersion,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ValueArgument {
    /// The value. Without it, or with `-`, it is read from stdin, to its end.
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: Option<OsString>,
}

/// Delete a register, whatever its version is.
///
/// It can be created again, and its versions go on; fencing tokens that have written are
/// forgotten.
#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// The name of the register.
    #[arg(add = names::registers())]
    pub(crate) name: OsString,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove what deleted registers have left on nodes that were down then; no value is touched.
///
/// With --older-than, registers whose values were written longer ago are deleted before. No
/// register expires by itself, so that is for markers that say "done".
#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    /// With --older-than: only registers whose names match, such as 'done:*'.
    #[arg(requires = "older_than")]
    pub(crate) pattern: Option<OsString>,
    /// Delete registers that were written at least as long ago, such as 30d. Whoever finds no
    /// marker does the work again, so this must be longer than anybody may ask for one.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) older_than: Option<Duration>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show which nodes have a vote on registers, and why the others have none.
///
/// The exit code is 0 if a majority has a vote, 78 if the nodes are not a group, and 69 otherwise.
/// It changes nothing: a durable node that was started again gets its vote back from the next
/// command that uses a register.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give each member that answers and has no vote its vote, such as an emptied node.
///
/// For that, a majority must have votes. The node gets all registers from the others. To replace a
/// server, name the new one with --node, in the place of the old one, and the old one with
/// --replace: it has no vote from then on.
#[derive(Debug, Args)]
pub(crate) struct RepairArguments {
    /// Give the place of the member with this URL, or with the address that `repair` names, to the
    /// new server among the nodes.
    #[arg(long, value_name = "OLD")]
    pub(crate) replace: Option<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give a node its vote that was started again, as it is: you know that it has forgotten nothing.
///
/// If that is wrong, registers may lose changes. With a majority of the others, `repair` is the way
/// without that danger.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// The URL of the node, as `redlatch registers status` shows it.
    // Not `node`: that is the name of the option with all nodes.
    #[arg(value_name = "NODE")]
    pub(crate) url: String,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The version that a change expects; `None` if it expects that there is no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SeenVersion(pub(crate) Option<Version>);

fn parse_version(text: &str) -> Result<SeenVersion, String> {
    if text == "none" {
        return Ok(SeenVersion(None));
    }
    let number = parse_number(text).ok_or("neither the number of a version nor `none`")?;
    Ok(SeenVersion(Some(Version::from_u64(number))))
}

fn parse_token(text: &str) -> Result<FencingToken, String> {
    let number = parse_number(text).ok_or("not the number of a fencing token")?;
    FencingToken::try_from(number).map_err(|error| error.to_string())
}

/// Digits and nothing else: the library's numbers are written without a sign.
fn parse_number(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(crate) const EXAMPLES: &str = "  redlatch registers form
  redlatch registers set leader host-17
  redlatch registers get leader
  redlatch registers cas import:2026-11 --version none done
  redlatch run report --fenced -- sh -c \\
    './report | redlatch registers set report --fence $REDLATCH_FENCING_TOKEN'
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number_or_none() {
        assert_eq!(parse_version("none"), Ok(SeenVersion(None)));
        assert_eq!(
            parse_version("64"),
            Ok(SeenVersion(Some(Version::from_u64(64))))
        );
        for text in [
            "",
            "None",
            "+64",
            "-1",
            "64 ",
            "1e3",
            "18446744073709551616",
        ] {
            assert!(parse_version(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_token_is_a_number_in_the_range_of_tokens() {
        assert_eq!(parse_token("7").map(u64::from), Ok(7));
        for text in ["", "seven", "+7", "0", "9223372036854775808"] {
            assert!(parse_token(text).is_err(), "{text:?}");
        }
    }
}
