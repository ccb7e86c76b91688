//! The descriptor that stands for the lock. The command inherits it, and so does what the command
//! starts: as long as a process has it, the lock is kept, as with `flock`.
//!
//! It is the writing end of a pipe. The reading end is here, and comes to its end when no process
//! has the other.

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Pid, getpid};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

/// Scripts use the numbers up to nine, and shells some above for themselves.
const NUMBER_MIN: i32 = 100;

pub(crate) struct Descriptor {
    reader: File,
}

impl Descriptor {
    /// The descriptor, and the end for the command: to be closed once that has started.
    pub(crate) fn open() -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = rustix::pipe::pipe()?;
        fcntl_setfd(&reader, FdFlags::CLOEXEC)?;
        // Where so high a number is not allowed, a lower one must do.
        let writer = fcntl_dupfd_cloexec(&writer, NUMBER_MIN).unwrap_or(writer);
        fcntl_setfd(&writer, FdFlags::empty())?;
        Ok((Self { reader: File::from(reader) }, writer))
    }

    /// Another handle, to wait with.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { reader: self.reader.try_clone()? })
    }

    /// Waits until no process has it any more.
    pub(crate) fn wait(mut self) {
        // Bytes that somebody has written mean nothing.
        let mut bytes = [0; 64];
        loop {
            match self.reader.read(&mut bytes) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                _ => {}
            }
        }
    }

    /// The processes that have it, as far as the system tells.
    pub(crate) fn holders(&self) -> Vec<Pid> {
        let Ok(pipe) = self.reader.metadata() else { return Vec::new() };
        let pipe = format!("pipe:[{}]", pipe.ino());
        let has_it = |pid: &Pid| {
            let open = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
            let mut open = open.into_iter().flatten().flatten();
            open.any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == &*pipe))
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let number = |name: std::ffi::OsString| name.to_str()?.parse().ok();
        let pids = processes.filter_map(|entry| number(entry.file_name()));
        let pids = pids.filter_map(Pid::from_raw).filter(|pid| *pid != getpid());
        pids.filter(has_it).collect()
    }
}
