//! The descriptor that stands for the lock. The command inherits it, and so does what the command
//! starts: as long as a process has it, the lock is kept, as with `flock`.
//!
//! It is the writing end of a pipe. The reading end is here, and comes to its end when no process
//! has the other.

use super::processes::{self, Process};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

/// Scripts use the numbers up to nine, and shells some above for themselves.
const NUMBER_MIN: i32 = 100;

/// Where no number may be so high.
const NUMBER_LOW: i32 = 10;

/// Which pipe it is, as the system names it.
#[derive(Clone)]
pub(crate) struct Descriptor {
    pipe: String,
}

/// The reading end.
pub(crate) struct ReadingEnd {
    file: File,
}

impl Descriptor {
    /// The descriptor, its reading end, and the end for the command: to be closed once that has
    /// started.
    pub(crate) fn open() -> io::Result<(Self, ReadingEnd, OwnedFd)> {
        let (reader, writer) = rustix::pipe::pipe()?;
        fcntl_setfd(&reader, FdFlags::CLOEXEC)?;
        let writer = fcntl_dupfd_cloexec(&writer, NUMBER_MIN)
            .or_else(|_| fcntl_dupfd_cloexec(&writer, NUMBER_LOW))
            .unwrap_or(writer);
        fcntl_setfd(&writer, FdFlags::empty())?;
        let file = File::from(reader);
        let pipe = format!("pipe:[{}]", file.metadata()?.ino());
        Ok((Self { pipe }, ReadingEnd { file }, writer))
    }

    /// The processes that have it, as far as the system tells.
    pub(crate) fn holders(&self) -> Vec<Process> {
        processes::with_descriptor(self.pipe.as_ref())
    }
}

impl ReadingEnd {
    /// Waits until no process has the descriptor any more.
    pub(crate) fn wait(mut self) {
        // Bytes that somebody has written mean nothing.
        let mut bytes = [0; 64];
        loop {
            match self.file.read(&mut bytes) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                _ => {}
            }
        }
    }
}
