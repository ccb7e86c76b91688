//! The arguments of `redlatch run`.

use crate::acquire::AcquireArguments;
use crate::{duration, exit};
use clap::Args;
use std::ffi::OsString;
use std::time::Duration;

/// Run a command while holding a lock.
///
/// Waits for its turn, keeps the lock alive as long as the command runs, passes signals on to it,
/// and exits as it did. If the lock is lost, the command is stopped.
///
/// TIME is written as 500ms, 30s, 5m or 1h30m; a number alone is seconds.
///
/// The command gets the lock's name in REDLATCH_LOCK, the fencing token in REDLATCH_FENCING_TOKEN
/// (--fenced), and the number of its permit in REDLATCH_PERMIT (--permits).
#[derive(Debug, Args)]
#[command(after_long_help = format!("Examples:\n{EXAMPLES}\n{}", exit::help()))]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) acquire: AcquireArguments,
    /// Ask for a fencing token: a number that grows with every grant.
    #[arg(long)]
    pub(crate) fenced: bool,
    /// How long the command has between SIGTERM and SIGKILL when the lock is lost.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    pub(crate) grace: Duration,
    /// Release the lock when the command ends, even if it has left processes running.
    #[arg(short = 'o', long)]
    pub(crate) close: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

pub(crate) const EXAMPLES: &str = "\
  redlatch run nightly-report --no-wait --hold-at-least 50s -- ./report.sh
  redlatch run deploy --wait 10m -- make deploy
  redlatch run gpu --permits 4 -- sh -c 'CUDA_VISIBLE_DEVICES=$REDLATCH_PERMIT ./train'
  redlatch run catalog --shared -- ./read-catalog
";
