//! The command line of `redlatch top`.

use clap::Args;
use std::ffi::OsString;

/// Show the locks, and who waits for them: those for which somebody waits longest come first.
///
/// On a terminal, it shows them again every two seconds. The arrows select a lock, Enter shows its
/// waiters and Esc goes back; l, n, a, w and t sort by the longest wait, the name, how long a lock
/// has been held, the waiters and the time left; q quits. Otherwise it prints them once.
///
/// Reads the names of the keys from one node after another with SCAN, 500 in a step, or of the
/// znodes from a ZooKeeper server, and then looks at each lock.
#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Only locks whose names match, such as 'orders:*'.
    #[arg(default_value = "*")]
    pub(crate) pattern: OsString,
    /// Show no more than the first N locks.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Print them on a terminal too.
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print them again every two seconds.
    #[arg(long)]
    pub(crate) watch: bool,
    /// As JSON: a list of objects; with --watch, a line each time.
    #[arg(long)]
    pub(crate) json: bool,
}
