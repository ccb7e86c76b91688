//! Files that are pipes, and pipes without an end.

use super::folder::Folder;
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
    let folder = Folder::new();
    let path = folder.path().join("file");
    for length in [0, 1, 8191, 8192, 8193, 100_000] {
        let bytes = vec![b'x'; length];
        fs::write(&path, &bytes).expect("a file");
        assert_eq!(read_or_kind(&path, Duration::ZERO), Ok(bytes));
    }
    assert_eq!(
        read_or_kind(folder.path(), SHORT),
        Err(ErrorKind::IsADirectory)
    );
    assert_eq!(
        read_or_kind(Path::new("/nowhere/file"), SHORT),
        Err(ErrorKind::NotFound)
    );
    assert_eq!(
        read_or_kind(Path::new("/dev/zero"), LONG),
        Err(ErrorKind::InvalidData)
    );
    assert_eq!(read_or_kind(Path::new("/dev/null"), SHORT), Ok(Vec::new()));
}

#[test]
fn a_pipe_is_read_to_its_end() {
    let folder = Folder::new();
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
    let folder = Folder::new();
    let path = named_pipe(folder.path());
    assert_eq!(
        read_or_kind(&path, SHORT),
        Err(ErrorKind::TimedOut),
        "no writer"
    );
    let mut both: File = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .expect("a pipe");
    both.write_all(b"half").expect("there is room");
    assert_eq!(
        read_or_kind(&path, SHORT),
        Err(ErrorKind::TimedOut),
        "a silent writer"
    );
    both.write_all(b"half").expect("there is room");
    let descriptor = PathBuf::from(format!("/dev/fd/{}", both.as_raw_fd()));
    assert_eq!(
        read_or_kind(&descriptor, SHORT),
        Err(ErrorKind::TimedOut),
        "a descriptor"
    );
}
