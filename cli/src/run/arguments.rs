//! The arguments of `redlatch run`.

use crate::acquire::AcquireArguments;
use crate::{duration, exit};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
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
#[command(override_usage = USAGE)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) acquire: AcquireArguments,
    /// Ask for a fencing token: a number that grows with every grant.
    #[arg(long)]
    pub(crate) fenced: bool,
    /// Run the command if it has not been run for so long, on any machine. A failed run counts. A
    /// lock remembers it, which nodes that lose their data forget.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    #[arg(conflicts_with_all = ["wait", "no_wait", "hold_at_least"])]
    pub(crate) once_per: Option<Duration>,
    /// Run it again if it has failed, or its machine has, also within that time.
    #[arg(long, requires = "once_per")]
    pub(crate) retry_failed: bool,
    /// Remember the run in a register, so that a minority of the nodes cannot forget it; they must
    /// keep registers (`redlatch registers form`).
    #[arg(long, requires = "once_per")]
    pub(crate) exact: bool,
    /// How long the command has between SIGTERM and SIGKILL when the lock is lost.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    pub(crate) grace: Duration,
    /// A command for /bin/sh, such as 'logger "lost $REDLATCH_LOCK"', that is started when the lock
    /// is lost, just before the command is stopped. It may take 10 s, and is killed then.
    #[arg(long, value_name = "STRING")]
    pub(crate) on_lost: Option<OsString>,
    /// Write metrics about the lock and the command to this file, such as report.prom, for the
    /// textfile collector of Prometheus' node_exporter.
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_textfile: Option<PathBuf>,
    /// Tell systemd when the lock is held, for a service with Type=notify, which also needs a long
    /// TimeoutStartSec. The command gets no NOTIFY_SOCKET then.
    #[arg(long)]
    pub(crate) notify: bool,
    /// Keep a file there as long as the lock is held, for a readiness probe. It says until when the
    /// lock is held at least, unless it is extended: in seconds since 1970. The probe compares that
    /// with the time, as the file of a process that was killed stays.
    #[arg(long, value_name = "FILE")]
    pub(crate) health_file: Option<PathBuf>,
    /// Release the lock when the command ends, even if it has left processes running.
    #[arg(short = 'o', long)]
    pub(crate) close: bool,
    /// Run this string with /bin/sh, in place of a command with arguments.
    #[arg(
        short = 'c',
        long = "command",
        value_name = "STRING",
        conflicts_with = "command"
    )]
    pub(crate) shell: Option<OsString>,
    /// The command and its arguments: all that follows its name is for the command.
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "shell",
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

impl RunArguments {
    /// The command's program and its arguments.
    pub(crate) fn words(&self) -> Vec<OsString> {
        match &self.shell {
            Some(string) => vec!["/bin/sh".into(), "-c".into(), string.clone()],
            None => self.command.clone(),
        }
    }
}

const USAGE: &str = "\
redlatch run [OPTIONS] <NAME> [--] <COMMAND>...
       redlatch run [OPTIONS] <NAME> -c <STRING>";

pub(crate) const EXAMPLES: &str =
    "  redlatch run nightly-report --no-wait --hold-at-least 50s -- ./report.sh
  redlatch run backup --once-per 1d -- ./backup.sh
  redlatch run deploy --wait 10m -- make deploy
  redlatch run gpu --permits 4 -- sh -c 'CUDA_VISIBLE_DEVICES=$REDLATCH_PERMIT ./train'
  redlatch run catalog --shared -- ./read-catalog
  redlatch run stock --also orders -c './count | ./report'
";
