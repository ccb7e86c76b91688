//! The command line of `redlatch doctor`.

use clap::Args;
use std::ffi::OsString;

/// Examine the nodes: what is wrong, or would be in a fault, and what to do about it.
///
/// Each line is a finding: a warning or an error, of which node, and in words; the last one says
/// whether the nodes grant locks. Without --lock, it changes nothing on the nodes.
///
/// The exit code is 0 if all is well; 9 if there are warnings, or errors of a minority of the
/// nodes; 71 if so many nodes are quarantined that no lock can be granted; and 69 if too few nodes
/// work for that.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Acquire this lock too, let a second client wait for it for a moment, and release it: so it
    /// is known whether the user on the nodes may do all that locks take.
    #[arg(long, value_name = "NAME")]
    pub(crate) lock: Option<OsString>,
    /// Print what is well, too.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// As JSON: a list of objects, with what is well.
    #[arg(long)]
    pub(crate) json: bool,
}
