//! The command's process: its group, the signals it gets, and its end.
//!
//! **Groups.** If this program is in the foreground of a terminal, the command shares its process
//! group: the terminal's signals then reach both, the command can read the terminal, and job
//! control works as for one program. Otherwise the command gets a group of its own, to which
//! signals are passed on: each arrives once, whoever sent it and to whichever group, and what the
//! command has started gets it as well.
//!
//! **Death.** On Linux the command is killed when this program dies, since nobody keeps its lock
//! alive any more.

use super::descriptor::{Descriptor, ReadingEnd};
use super::exec;
use super::processes::{self, Process, with_descendants};
use crate::exit::{self, Failure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, waitid};
use rustix::process::{kill_process, kill_process_group};
use std::collections::HashSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::mem;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// How often processes are searched for that others have started meanwhile.
const ROUNDS_MAX: usize = 10;

/// Linux reads no more of a script's first line.
const LINE_MAX: u64 = 256;

pub(crate) struct Child {
    process: std::process::Child,
    pid: Pid,
    has_own_group: bool,
    /// What it and all that it starts inherit, unless the user does not want that.
    descriptor: Option<Descriptor>,
    reading_end: Option<ReadingEnd>,
    /// What the last signal to all has reached, apart from the command and its own group.
    reached: HashSet<Process>,
}

impl Child {
    /// Starts the command. It is the main thread that does, since the command dies with the thread
    /// that started it.
    pub(crate) fn spawn(
        words: &[OsString],
        variables: &[(&str, Option<OsString>)],
        has_descriptor: bool,
    ) -> Result<Self, Failure> {
        let opened = has_descriptor.then(Descriptor::open).transpose();
        let opened = match opened.map_err(|error| Failure::system("no pipe", &error))? {
            Some((descriptor, end, inherited)) => (Some(descriptor), Some(end), Some(inherited)),
            None => (None, None, None),
        };
        let (descriptor, reading_end, inherited) = opened;
        let (mut command, held_stop) = exec::command(words);
        super::set_variables(&mut command, variables);
        let has_own_group = !is_in_foreground();
        if has_own_group {
            command.process_group(0);
        }
        let process = command.spawn();
        drop((held_stop, inherited));
        let process = process.map_err(|error| not_started(&words[0], &error))?;
        let pid = Pid::from_child(&process);
        let reached = HashSet::new();
        Ok(Self {
            process,
            pid,
            has_own_group,
            descriptor,
            reading_end,
            reached,
        })
    }

    /// `None` if the command does not inherit one.
    pub(crate) fn descriptor(&self) -> Option<&Descriptor> {
        self.descriptor.as_ref()
    }

    /// Comes to its end when no process has the descriptor: to wait with, once.
    pub(crate) fn take_reading_end(&mut self) -> Option<ReadingEnd> {
        self.reading_end.take()
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

    /// Passes a signal on. It fails if the process has ended, or is another user's.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.has_own_group {
            let _ = kill_process_group(self.pid, signal);
        } else {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Has the command, and what it has started, get these signals: each process once.
    ///
    /// If one of them is a `redlatch run` as well, it passes the signals on: its command, which is
    /// found here too, may get them twice.
    pub(crate) fn signal_all(&mut self, signals: &[Signal]) {
        self.reach(signals, HashSet::new(), 1);
    }

    /// Stops the command and what it has started, also what that starts meanwhile.
    pub(crate) fn stop_all(&mut self) {
        self.reach(&[Signal::STOP], HashSet::new(), ROUNDS_MAX);
    }

    /// Continues what was stopped, even if it is not found again.
    pub(crate) fn continue_all(&mut self) {
        let known = mem::take(&mut self.reached);
        self.reach(&[Signal::CONT], known, 1);
    }

    /// Kills the command and what it has started, also what that starts meanwhile.
    pub(crate) fn kill_all(&mut self) {
        let known = mem::take(&mut self.reached);
        self.reach(&[Signal::KILL], known, ROUNDS_MAX);
    }

    /// Signals the command, then the known processes, and then all others that are found, which
    /// takes time: again, up to this many times, until no new one is found.
    fn reach(&mut self, signals: &[Signal], known: HashSet<Process>, rounds_max: usize) {
        // Before the command may end: its children then have another parent.
        let below = with_descendants(Process::of(self.pid));
        signals.iter().for_each(|signal| self.signal(*signal));
        self.reached.clear();
        self.signal_each(known.into_iter().chain(below), signals);
        for _ in 0..rounds_max {
            let holders = self.descriptor.iter().flat_map(Descriptor::holders);
            // All of them before any ends, for the same reason.
            if !self.signal_each(with_descendants(holders), signals) {
                return;
            }
        }
    }

    /// Signals those that were not reached yet. Was there any?
    fn signal_each(
        &mut self,
        processes: impl IntoIterator<Item = Process>,
        signals: &[Signal],
    ) -> bool {
        let mut is_any_new = false;
        for process in processes {
            let is_itself = [self.pid, getpid()].contains(&process.pid());
            let is_reached = self.has_own_group && process.is_in_group(self.pid);
            if !is_itself && !is_reached && self.reached.insert(process) {
                process.signal(signals);
                is_any_new = true;
            }
        }
        is_any_new
    }

    /// Has it ended? It stays to be waited for.
    pub(crate) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Its exit code, once it has ended. A failure if it has not started, which it has said.
    pub(crate) fn code(&mut self) -> Result<u8, Failure> {
        // While its number is its own.
        let is_unstarted = processes::has_name(self.pid, exec::UNSTARTED);
        let status = self.process.wait();
        match status {
            Ok(status) if is_unstarted => Err(Failure::silent(code_of(status))),
            Ok(status) => Ok(code_of(status)),
            Err(error) => Err(Failure::system("waiting for the command", &error)),
        }
    }
}

pub(super) fn code_of(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|n| i32::from(exit::SIGNAL) + n));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(exit::FAILED)
}

/// Why the command did not start, though its file looked as if it could.
pub(super) fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::NotFound => exit::NOT_FOUND,
        _ => exit::NOT_EXECUTABLE,
    };
    let is_found = find(program).ok().filter(|_| code == exit::NOT_FOUND);
    let why = match is_found.map(|file| interpreter(&file)) {
        Some(Some(name)) => format!("its interpreter does not exist: {name}"),
        Some(None) => "it is there, but not the interpreter that loads it".to_owned(),
        None => error.to_string(),
    };
    Failure::new(code, &format!("{}: {why}", Path::new(program).display()))
}

/// The program that the first line of a script names. A line that ends in CR LF has the CR in it.
fn interpreter(file: &Path) -> Option<String> {
    let mut line = Vec::new();
    let file = File::open(file).ok()?.take(LINE_MAX);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8_lossy(&line).into_owned();
    let words = line.strip_prefix("#!")?.trim_matches([' ', '\t', '\n']);
    Some(words.split([' ', '\t']).next()?.to_owned())
}

/// Can this command be started, as far as its file tells?
pub(crate) fn check(program: &OsStr) -> Result<(), Failure> {
    let (code, what) = match find(program) {
        Ok(_) => return Ok(()),
        Err(_) if program.is_empty() => {
            return Err(Failure::new(exit::NOT_FOUND, &"the command is empty"));
        }
        Err(ErrorKind::NotFound) => (exit::NOT_FOUND, "command not found"),
        Err(_) => (exit::NOT_EXECUTABLE, "not an executable file"),
    };
    Err(Failure::new(
        code,
        &format!("{}: {what}", Path::new(program).display()),
    ))
}

/// The file of this command, if it can be executed.
fn find(program: &OsStr) -> Result<PathBuf, ErrorKind> {
    let is_path = program.as_encoded_bytes().contains(&b'/');
    // A shell searches these folders if there is no PATH.
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut found = ErrorKind::NotFound;
    if program.is_empty() {
        return Err(found);
    }
    let folders = env::split_paths(&path).map(|folder| folder.join(program));
    let files: Vec<_> = if is_path {
        vec![program.into()]
    } else {
        folders.collect()
    };
    for file in files {
        match fs::metadata(&file) {
            Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => {
                return Ok(file);
            }
            Ok(_) => found = ErrorKind::PermissionDenied,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                found = ErrorKind::PermissionDenied;
            }
            Err(_) => {}
        }
    }
    Err(found)
}

/// Is this process in the foreground of a terminal?
pub(crate) fn is_in_foreground() -> bool {
    let foreground = File::open("/dev/tty")
        .ok()
        .and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    foreground.is_some_and(processes::is_own_group)
}
