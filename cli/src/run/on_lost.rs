//! The command of `--on-lost`: it is started just before the command is stopped, and runs beside
//! that.

use super::child::code_of;
use crate::output;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// It delays the end of this program for no longer.
const LONGEST: Duration = Duration::from_secs(10);

/// How often its end is looked for.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) struct OnLost {
    command: Option<Command>,
    started: Option<(Child, Instant)>,
}

impl OnLost {
    /// It gets the variables of the command, and a process group of its own.
    pub(crate) fn new(string: Option<&OsStr>, variables: &[(&str, Option<OsString>)]) -> Self {
        let command = string.map(|string| {
            let mut command = Command::new("/bin/sh");
            command
                .arg("-c")
                .arg(string)
                .stdin(Stdio::null())
                .process_group(0);
            super::set_variables(&mut command, variables);
            command
        });
        Self {
            command,
            started: None,
        }
    }

    /// Starts it, once.
    pub(crate) fn start(&mut self) {
        let Some(mut command) = self.command.take() else {
            return;
        };
        match command.spawn() {
            Ok(child) => self.started = Some((child, Instant::now())),
            Err(error) => output::note_aside(move || format!("--on-lost: {error}")),
        }
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        self.started
            .as_ref()
            .map(|(child, _)| Pid::from_child(child))
    }

    /// Waits for its end, and tells the user if it has failed.
    pub(crate) fn finish(self) {
        let Some((mut child, start)) = self.started else {
            return;
        };
        let text = loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return,
                Ok(Some(status)) => break format!("exit code {}", code_of(status)),
                Err(error) => break error.to_string(),
                Ok(None) if start.elapsed() < LONGEST => thread::sleep(LOOK),
                Ok(None) => {
                    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                    let _ = child.wait();
                    break format!("killed after {} s", LONGEST.as_secs());
                }
            }
        };
        output::note(&format!("--on-lost: {text}"));
    }
}
