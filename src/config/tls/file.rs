//! Reads a file that may be something else: a pipe, as a shell makes it for `<(command)`, a named
//! pipe that nobody writes to, or a device without an end.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// How long a pipe may take to its end. A command that decrypts a key has ended by then.
const LIMIT: Duration = Duration::from_secs(5);

/// The most bytes of a file. The certificates of all public authorities are a quarter of a million.
const SIZE_MAX: usize = 16 << 20;

/// The bytes of a file or, if it ends within five seconds, of a pipe. (The limit is for Unix.)
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, LIMIT)
}

/// Neither opening nor reading waits for a writer for longer than this.
#[cfg(unix)]
pub(super) fn read_within(path: &Path, limit: Duration) -> io::Result<Vec<u8>> {
    use crate::clock;
    use rustix::fs::{Mode, OFlags};
    use std::fs::File;
    use std::io::Read;

    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = || rustix::fs::open(path, flags, Mode::empty());
    let mut file = File::from(rustix::io::retry_on_intr(open)?);
    let deadline = clock::now().after(limit);
    let mut bytes = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        // Before each read, because some systems ignore the flag for what a shell has opened.
        if !is_ready(&file, deadline.since(clock::now()))? {
            let text = format!("no end of its data within {limit:?}");
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
        match file.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        check_size(&bytes)?;
    }
}

/// Waits until there are bytes, an end or an error to read.
#[cfg(unix)]
fn is_ready(file: &std::fs::File, limit: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec::try_from(limit).ok();
    let mut polled = [PollFd::new(file, PollFlags::IN)];
    let count = rustix::io::retry_on_intr(|| poll(&mut polled, limit.as_ref()))?;
    Ok(count > 0)
}

#[cfg(not(unix))]
pub(super) fn read_within(path: &Path, _limit: Duration) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    check_size(&bytes)?;
    Ok(bytes)
}

fn check_size(bytes: &[u8]) -> io::Result<()> {
    let error = || io::Error::new(ErrorKind::InvalidData, "it has more than 16 MiB");
    if bytes.len() > SIZE_MAX { Err(error()) } else { Ok(()) }
}

// Linux: the tests make named pipes there only.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs::{self, File, OpenOptions};
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(100);

    fn named_pipe(folder: &Path) -> PathBuf {
        let path = folder.join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        path
    }

    /// The bytes, or the kind of the error.
    fn read_or_kind(path: &Path, limit: Duration) -> Result<Vec<u8>, ErrorKind> {
        read_within(path, limit).map_err(|error| error.kind())
    }

    #[test]
    fn a_file_is_read_and_a_folder_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        for length in [0, 1, 8191, 8192, 8193, 100_000] {
            let bytes = vec![b'x'; length];
            fs::write(&path, &bytes).expect("a file");
            assert_eq!(read_or_kind(&path, Duration::ZERO), Ok(bytes));
        }
        assert_eq!(read_or_kind(folder.path(), SHORT), Err(ErrorKind::IsADirectory));
        assert_eq!(read_or_kind(Path::new("/nowhere/file"), SHORT), Err(ErrorKind::NotFound));
        assert_eq!(read_or_kind(Path::new("/dev/zero"), LONG), Err(ErrorKind::InvalidData));
        assert_eq!(read_or_kind(Path::new("/dev/null"), SHORT), Ok(Vec::new()));
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = named_pipe(folder.path());
        let writer = {
            let path = path.clone();
            thread::spawn(move || {
                thread::sleep(SHORT);
                let mut pipe = OpenOptions::new().write(true).open(path).expect("a reader");
                for part in [b"a", b"b", b"c"] {
                    thread::sleep(SHORT);
                    pipe.write_all(part).expect("a reader");
                }
            })
        };
        assert_eq!(read_or_kind(&path, LONG), Ok(b"abc".to_vec()));
        writer.join().expect("it has written");
    }

    #[test]
    fn a_pipe_without_an_end_is_an_error_after_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = named_pipe(folder.path());
        assert_eq!(read_or_kind(&path, SHORT), Err(ErrorKind::TimedOut), "no writer");
        let mut both: File = OpenOptions::new().read(true).write(true).open(&path).expect("a pipe");
        both.write_all(b"half").expect("there is room");
        assert_eq!(read_or_kind(&path, SHORT), Err(ErrorKind::TimedOut), "a silent writer");
        both.write_all(b"half").expect("there is room");
        let descriptor = PathBuf::from(format!("/dev/fd/{}", both.as_raw_fd()));
        assert_eq!(read_or_kind(&descriptor, SHORT), Err(ErrorKind::TimedOut), "a descriptor");
    }
}
