//! The files that a run keeps for other programs, each replaced in one step: whoever reads one
//! finds the old text or the new one.

use crate::exit::Failure;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use std::fs::{self, File, FileType, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that this process has written. It is open, so that no other one gets its number, and
/// locked, so that other processes can tell that this one lives; a file system may refuse that.
pub(super) struct StateFile(File);

impl StateFile {
    /// Puts a file with this text at the path, which every user may read.
    pub(super) fn replace(path: &Path, text: &str) -> io::Result<Self> {
        if let Some(what) = kind_of(path)? {
            return Err(io::Error::other(what));
        }
        let (temporary, file) = create_beside(path)?;
        let written = fill(&file, text).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map(|()| Self(file))
    }

    /// Is it still what is at the path?
    pub(super) fn is_at(&self, path: &Path) -> bool {
        let (Ok(own), Ok(found)) = (self.0.metadata(), fs::symlink_metadata(path)) else {
            return false;
        };
        (own.dev(), own.ino()) == (found.dev(), found.ino())
    }
}

/// A device, a pipe or a link would be gone for all that use it.
pub(super) fn refuse_special(option: &str, path: &Path) -> Result<(), Failure> {
    // Of what cannot be looked at, the warning of the first write tells.
    match kind_of(path) {
        Ok(Some(what)) => Err(refused(option, path, what)),
        _ => Ok(()),
    }
}

pub(super) fn refused(option: &str, path: &Path, what: &str) -> Failure {
    let path = path.display();
    Failure::usage(&format!(
        "{option}: {path} {what}: name a file that this run may replace"
    ))
}

/// What is at the path, if that is not a file and not nothing.
fn kind_of(path: &Path) -> io::Result<Option<&'static str>> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(special(found.file_type())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn special(kind: FileType) -> Option<&'static str> {
    Some(match kind {
        kind if kind.is_file() => return None,
        kind if kind.is_dir() => "is a folder",
        kind if kind.is_symlink() => "is a symbolic link",
        kind if kind.is_fifo() => "is a pipe",
        kind if kind.is_socket() => "is a socket",
        _ => "is a device",
    })
}

/// Is the process alive that has written this file, and is it another one?
pub(super) fn is_kept_by_another(path: &Path) -> bool {
    let Ok(file) = open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Opens what is at the path to read it, without waiting: it may have become a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// A new file, with a name of its own: several containers in each of which this is process 1 may
/// have the folder in common.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut name = path.as_os_str().to_owned();
        // The collector of metrics reads files that end in .prom.
        name.push(format!(".{}-{}", std::process::id(), now.as_nanos()));
        match File::options().write(true).create_new(true).open(&name) {
            Ok(file) => return Ok((name.into(), file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

fn fill(mut file: &File, text: &str) -> io::Result<()> {
    let _ = flock(file, FlockOperation::NonBlockingLockExclusive);
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text.as_bytes())
}
