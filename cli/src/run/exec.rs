//! How the command starts. On Linux this program starts itself again, and that process prepares
//! itself and becomes the command.
//!
//! **Death.** A process can ask only for itself to be killed when its parent dies.
//!
//! **SIGTSTP** waits in that process until then. The kernel keeps a parent waiting until the
//! process that it starts executes a program. If the terminal stopped that process before, the
//! parent could not stop either, and `^Z` would hang: the shell would not return.

use super::child::not_started;
use crate::exit;
use crate::output;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The first argument of this program when it is to become the command.
const EXEC: &str = "__exec";

/// The name of a process that has not become the command: what starts a program replaces it. Its
/// parent sees it when the process has ended.
pub(super) const UNSTARTED: &str = "redlatch-exec";

/// The command, and what is to be dropped when it has been started.
pub(super) fn command(words: &[OsString]) -> (Command, Option<HeldStop>) {
    let itself = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && itself.exists() {
        let held_stop = HeldStop::begin();
        let mut command = Command::new(itself);
        command
            .arg0("redlatch")
            .arg(EXEC)
            .arg(std::process::id().to_string());
        command.arg(held_stop.to_argument()).args(words);
        return (command, Some(held_stop));
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    (command, None)
}

/// Becomes the command, if this process was started for that. The exit code if that fails.
pub(crate) fn exec_if_asked() -> Option<u8> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != EXEC {
        return None;
    }
    let parent = arguments.next()?;
    let held_stop = HeldStop::of_argument(&arguments.next()?);
    let program = arguments.next()?;
    if !bind_to(&parent) {
        return Some(exit::LOST);
    }
    drop(held_stop);
    // Without it, a command that does not start is one that has run.
    let _ = fs::write("/proc/self/comm", UNSTARTED);
    let error = Command::new(&program).args(arguments).exec();
    let failure = not_started(&program, &error);
    output::note(&failure.text);
    Some(failure.code)
}

/// Asks to be killed when the parent dies. `false` if it has died already.
#[cfg(target_os = "linux")]
fn bind_to(parent: &OsStr) -> bool {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
    // It fails for no signal that there is.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let is_parent = |pid: Pid| parent == OsStr::new(&pid.as_raw_nonzero().to_string());
    getppid().is_some_and(is_parent)
}

#[cfg(not(target_os = "linux"))]
fn bind_to(_parent: &OsStr) -> bool {
    true
}

/// SIGTSTP is blocked in this thread, and in what it starts, until this is dropped.
pub(super) struct HeldStop {
    /// Not if whoever started this program had blocked it: the command inherits that.
    is_ours: bool,
}

impl HeldStop {
    const OURS: &str = "ours";
    const OTHERS: &str = "others";

    fn to_argument(&self) -> &'static str {
        if self.is_ours {
            Self::OURS
        } else {
            Self::OTHERS
        }
    }

    fn of_argument(argument: &OsStr) -> Self {
        Self {
            is_ours: argument == Self::OURS,
        }
    }
}

#[cfg(target_os = "linux")]
impl HeldStop {
    fn begin() -> Self {
        use nix::sys::signal::SigmaskHow;
        let before = Self::mask().thread_swap_mask(SigmaskHow::SIG_BLOCK);
        // It fails for no mask that there is.
        Self {
            is_ours: before.is_ok_and(|mask| !mask.contains(Self::SIGNAL)),
        }
    }

    const SIGNAL: nix::sys::signal::Signal = nix::sys::signal::Signal::SIGTSTP;

    fn mask() -> nix::sys::signal::SigSet {
        nix::sys::signal::SigSet::from(Self::SIGNAL)
    }
}

#[cfg(target_os = "linux")]
impl Drop for HeldStop {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = Self::mask().thread_unblock();
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl HeldStop {
    fn begin() -> Self {
        Self { is_ours: false }
    }
}
