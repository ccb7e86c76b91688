//! Descriptors 0 to 2 are the program's, also if it has closed them: a connection that took their
//! place would be sent what the program prints.

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::os::fd::{AsRawFd, IntoRawFd};

/// Leaves none of these descriptors free. Called before each descriptor of ours is opened: a
/// program may close its own at any time. Rust's runtime does this once, at the begin of `main`,
/// and programs in other languages do not have it.
///
/// What is put there is closed by `exec`, so that other programs have these descriptors as this
/// program left them. A program that opens a file of its own there closes it first, or replaces it
/// (`dup2`).
#[cfg(unix)]
pub(super) fn keep_standard_ones() {
    while let Ok(file) = open_any() {
        if file.as_raw_fd() > 2 {
            return;
        }
        // From now on the program's.
        let _ = file.into_raw_fd();
    }
}

/// A file that is always there. It takes the lowest descriptor that is free.
#[cfg(unix)]
fn open_any() -> io::Result<File> {
    let device = File::options().read(true).write(true).open("/dev/null");
    // A changed root may have no devices, and always has a folder.
    device.or_else(|_| File::open("/"))
}

/// Windows numbers sockets and files apart.
#[cfg(not(unix))]
pub(super) fn keep_standard_ones() {}
