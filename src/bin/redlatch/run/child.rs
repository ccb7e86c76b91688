//! The command's process: its group, the signals it gets, and its end.
//!
//! **Groups.** If this program is in the foreground of a terminal, the command shares its process
//! group: the terminal's signals then reach both, the command can read the terminal, and job
//! control works as for one program. Otherwise the command gets a group of its own, to which
//! signals are passed on: each arrives once, whoever sent it and to whichever group, and what the
//! command has started gets it as well.
//!
//! **Death.** On Linux the command is killed when this program dies, since nobody keeps its lock
//! alive any more. A process can ask for that only for itself, so this program starts itself again,
//! which asks and then becomes the command.

use super::descriptor::Descriptor;
use crate::exit::{self, Failure};
use crate::output;
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process, kill_process_group};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

/// The first argument of this program when it is to become the command.
const EXEC: &str = "__exec";

pub(crate) struct Child {
    process: std::process::Child,
    pid: Pid,
    has_own_group: bool,
    /// What it and all that it starts inherit, unless the user does not want that.
    descriptor: Option<Descriptor>,
}

impl Child {
    /// Starts the command. It is the main thread that does, since the command dies with the thread
    /// that started it.
    pub(crate) fn spawn(
        words: &[OsString],
        variables: &[(&str, Option<Vec<u8>>)],
        has_descriptor: bool,
    ) -> Result<Self, Failure> {
        let descriptor = has_descriptor.then(Descriptor::open).transpose();
        let descriptor = descriptor.map_err(|error| Failure::system("no pipe", &error))?;
        let (descriptor, inherited) = descriptor.unzip();
        let mut command = command(words);
        for (name, value) in variables {
            match value {
                Some(value) => command.env(name, OsString::from_vec(value.clone())),
                None => command.env_remove(name),
            };
        }
        let has_own_group = !is_in_foreground();
        if has_own_group {
            command.process_group(0);
        }
        let process = command.spawn().map_err(|error| not_started(&words[0], &error))?;
        drop(inherited);
        let pid = Pid::from_child(&process);
        Ok(Self { process, pid, has_own_group, descriptor })
    }

    /// Closes when no process has it. `None` if the command does not inherit one.
    pub(crate) fn descriptor(&self) -> Option<&Descriptor> {
        self.descriptor.as_ref()
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn has_own_group(&self) -> bool {
        self.has_own_group
    }

    /// Gives the terminal to the command's own group, if it is this program's to give. Its keys
    /// then reach the command only.
    pub(crate) fn give_terminal(&self) -> bool {
        let tty = File::open("/dev/tty").ok().filter(|_| is_in_foreground());
        tty.is_some_and(|tty| rustix::termios::tcsetpgrp(tty, self.pid).is_ok())
    }

    /// Passes a signal on. It fails only if the process has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.has_own_group {
            let _ = kill_process_group(self.pid, signal);
        } else {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Has the command, and what it has started, get this signal: each process once.
    pub(crate) fn signal_all(&self, signal: Signal) {
        // Before the command may end: its children then have another parent.
        let mut others = if self.has_own_group { Vec::new() } else { descendants(self.pid) };
        // Before the others, which take time to be found.
        self.signal(signal);
        others.extend(self.descriptor.iter().flat_map(Descriptor::holders));
        others.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        others.dedup();
        let is_other = |pid: &Pid| {
            let is_in_group = self.has_own_group && getpgid(Some(*pid)) == Ok(self.pid);
            *pid != self.pid && !is_in_group
        };
        for pid in others.into_iter().filter(is_other) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills the command, and what it has started, also what that starts meanwhile.
    pub(crate) fn kill_all(&self) {
        const TIMES: usize = 10;
        for _ in 0..TIMES {
            self.signal_all(Signal::KILL);
            let is_held = |descriptor: &Descriptor| !descriptor.holders().is_empty();
            if !self.descriptor.as_ref().is_some_and(is_held) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Its exit code, once it has ended.
    pub(crate) fn code(&mut self) -> Result<u8, Failure> {
        let status = self.process.wait();
        status.map(code_of).map_err(|error| Failure::system("waiting for the command", &error))
    }
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|n| i32::from(exit::SIGNAL) + n));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::FAILED)
}

fn command(words: &[OsString]) -> Command {
    let itself = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && itself.exists() {
        let mut command = Command::new(itself);
        command.arg0("redlatch").arg(EXEC).arg(std::process::id().to_string()).args(words);
        return command;
    }
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Becomes the command, if this process was started for that. The exit code if that fails.
pub(crate) fn exec_if_asked() -> Option<u8> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != EXEC {
        return None;
    }
    let parent = arguments.next()?;
    let program = arguments.next()?;
    if !bind_to(&parent) {
        return Some(exit::LOST);
    }
    let error = Command::new(&program).args(arguments).exec();
    let failure = not_started(&program, &error);
    output::note(&failure.text);
    Some(failure.code)
}

/// Asks to be killed when the parent dies. `false` if it has died already.
#[cfg(target_os = "linux")]
fn bind_to(parent: &OsStr) -> bool {
    use rustix::process::{getppid, set_parent_process_death_signal};
    // It fails for no signal that there is.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let is_parent = |pid: Pid| parent == OsStr::new(&pid.as_raw_nonzero().to_string());
    getppid().is_some_and(is_parent)
}

#[cfg(not(target_os = "linux"))]
fn bind_to(_parent: &OsStr) -> bool {
    true
}

fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::NotFound => exit::NOT_FOUND,
        _ => exit::NOT_EXECUTABLE,
    };
    Failure::new(code, &format!("{}: {error}", Path::new(program).display()))
}

/// Can this command be started, as far as its file tells?
pub(crate) fn check(program: &OsStr) -> Result<(), Failure> {
    let is_path = program.as_encoded_bytes().contains(&b'/');
    // A shell searches these folders if there is no PATH.
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut found = ErrorKind::NotFound;
    let folders = env::split_paths(&path).map(|folder| folder.join(program));
    if program.is_empty() {
        return Err(Failure::new(exit::NOT_FOUND, &"the command is empty"));
    }
    let files: Vec<_> = if is_path { vec![program.into()] } else { folders.collect() };
    for file in files {
        match fs::metadata(&file) {
            Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => return Ok(()),
            Ok(_) => found = ErrorKind::PermissionDenied,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                found = ErrorKind::PermissionDenied;
            }
            Err(_) => {}
        }
    }
    let (code, what) = match found {
        ErrorKind::NotFound => (exit::NOT_FOUND, "command not found"),
        _ => (exit::NOT_EXECUTABLE, "not an executable file"),
    };
    Err(Failure::new(code, &format!("{}: {what}", Path::new(program).display())))
}

/// Is this process in the foreground of a terminal?
pub(crate) fn is_in_foreground() -> bool {
    let foreground =
        File::open("/dev/tty").ok().and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    foreground == Some(getpgrp())
}

/// The processes that a process has started, and those that these have, as far as the system tells.
fn descendants(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
            let children: Vec<Pid> = children.filter_map(Pid::from_raw).collect();
            open.extend(&children);
            found.extend(children);
        }
    }
    found
}
